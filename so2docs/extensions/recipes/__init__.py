"""Recipes: pure functions that convert a document to the records of a data set."""
