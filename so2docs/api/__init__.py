"""The public functions that convert one or several dumps."""
