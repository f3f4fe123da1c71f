"""The files of a new project: templates, and the parts that depend on choices."""
