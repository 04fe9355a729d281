"""Documents -> files: formats, compression, names, and the index beside an output."""
