"""Stage 3: checked documents become one plan; the same documents always become the same bytes."""
