"""The public conversion functions, for one or several dumps."""
