"""Runs of a plan: prepared, wired, run to the end, concluded."""
