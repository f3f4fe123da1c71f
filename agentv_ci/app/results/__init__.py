"""Results: reported, compared, scored again."""
