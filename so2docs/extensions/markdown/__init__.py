"""Markdown from HTML, and TeX formulas."""
