"""Recipes: from a document to the records of a data set. Pure functions."""
