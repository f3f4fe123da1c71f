"""Rules that a JSON Schema cannot express: one file per subject, one function per rule."""
