"""Stage 4: a plan is run; every trial becomes a row."""
