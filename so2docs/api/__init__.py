"""The functions of the library that convert: one dump, or several."""
