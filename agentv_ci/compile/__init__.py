"""Stage 3: compile checked documents into one plan, deterministically."""
