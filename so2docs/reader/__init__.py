"""Finished outputs, read back: all documents in turn, or one of them by its id."""
