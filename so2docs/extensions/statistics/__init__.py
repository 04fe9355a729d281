"""Statistics of an output, as text, JSON and HTML."""
