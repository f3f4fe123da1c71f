"""Every type that crosses a stage boundary, one file per document."""
