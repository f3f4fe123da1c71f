"""Formats of diagnostics."""
