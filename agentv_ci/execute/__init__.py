"""Stage 4: run a plan; every trial becomes a row."""
