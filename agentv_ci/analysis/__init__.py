"""Analyze rows: outcomes, statistics, the gate, comparisons."""
