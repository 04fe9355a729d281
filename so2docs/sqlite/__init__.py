"""Documents -> one SQLite database with full-text search, and its rows -> documents again."""
