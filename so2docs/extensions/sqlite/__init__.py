"""Make SQLite databases with full-text search, and read documents from them."""
