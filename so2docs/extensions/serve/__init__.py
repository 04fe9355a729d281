"""The offline reader: serves a database as web pages and as JSON, and to language models."""
