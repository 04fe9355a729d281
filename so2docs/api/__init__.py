"""The public conversion functions, for one or more dumps."""
