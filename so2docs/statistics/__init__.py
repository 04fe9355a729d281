"""The whole of an output at a glance: counts, as a table, as JSON, and as a page."""
