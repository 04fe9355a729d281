"""Inspect dumps without converting them: form, tables, and checks of their counts."""
