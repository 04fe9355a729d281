"""SQLite databases with full-text search: making them, and reading documents from them."""
