"""The published schemas in other people's tools: unchanged, and as helpful as the tool itself."""
