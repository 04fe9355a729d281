"""Capabilities that are built on the core, or plug into it."""
