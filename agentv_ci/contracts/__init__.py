"""Types that cross a stage boundary, one file per document."""
