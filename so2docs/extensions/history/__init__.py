"""Revisions of posts, nested into documents."""
