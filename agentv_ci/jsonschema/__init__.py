"""JSON Schemas: the published ones, their rendering, and those of authors."""
