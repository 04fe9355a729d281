"""Write documents to files: formats, compression, names, and the index next to an output."""
