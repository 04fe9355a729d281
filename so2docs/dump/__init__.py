"""What users have -> a dump: a file to read in ranges, or a stream to read from its start.

The door is `opening.open_source`. What a source is, its content says, not its name.
"""
