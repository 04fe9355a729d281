"""Rows of a dump -> posts and rows of tables as JSON, by lxml and Python or compiled."""
