"""A stage beside the run: wrong answers to a plan's cases, and what their grades show of the evaluators."""
