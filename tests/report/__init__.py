"""Rows become one report."""
