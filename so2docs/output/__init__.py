"""Documents -> files: formats, compression, names, and the index next to an output."""
