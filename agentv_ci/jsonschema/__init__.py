"""JSON Schemas: the published ones, and those of authors."""
