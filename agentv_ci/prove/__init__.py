"""A stage beside the run: wrong answers to a plan's cases.

Their grades show what the evaluators are worth.
"""
