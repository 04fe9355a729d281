"""Changes of single operators and constants, which the tests must notice."""
