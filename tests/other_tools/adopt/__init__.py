"""Results of other tools."""
