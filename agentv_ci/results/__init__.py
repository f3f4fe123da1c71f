"""Rows of results: how they are made, written and read."""
