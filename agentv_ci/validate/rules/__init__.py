"""What a JSON Schema cannot say: one file per subject, one function per rule."""
