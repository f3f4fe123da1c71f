"""What users were promised, scenario by scenario."""
