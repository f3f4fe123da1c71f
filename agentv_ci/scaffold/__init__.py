"""What a new project begins with: texts, as files, and what depends on a few choices."""
