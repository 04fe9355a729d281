"""Any source -> a dump: a file to read in ranges, or a stream to read from its start.

`opening` is the entry. The content of a source determines its kind, not its name.
"""
