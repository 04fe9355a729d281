"""Statistics of an output, as text and JSON."""
