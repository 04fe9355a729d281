"""Flat tables: the rows of a dump as typed columns, one file or folder for each table."""
