"""Recipes convert a document to the records of a data set. Pure functions."""
