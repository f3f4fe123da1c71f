"""Documents become one plan."""
