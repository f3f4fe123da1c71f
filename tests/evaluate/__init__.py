"""Answers become grades."""
