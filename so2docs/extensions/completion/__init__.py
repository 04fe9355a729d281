"""Completion of commands and options in shells."""
