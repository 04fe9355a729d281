"""Statistics of an output, as a table, as JSON and as a page."""
