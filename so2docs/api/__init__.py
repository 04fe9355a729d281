"""Functions of the library that convert one or several dumps."""
