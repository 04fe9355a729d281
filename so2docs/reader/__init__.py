"""Read finished outputs: all documents in turn, or single documents by id."""
