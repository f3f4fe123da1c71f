"""One file per kind of evaluator, and what they share."""
