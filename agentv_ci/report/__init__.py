"""Stage 6: render a finished run for people and programs."""
