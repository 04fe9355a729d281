"""Read a dump: a file in ranges, or a stream from its start.

`source` finds the files of a dump and `opening` opens them. The content of a file, not its name,
determines its type.
"""
