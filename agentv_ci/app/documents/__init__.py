"""Documents: checked, compiled, written."""
