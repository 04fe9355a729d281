"""What a dump is, without converting it: its form, its tables, and whether its counts hold."""
