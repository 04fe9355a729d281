"""Changes between two outputs of the same site.

Both outputs are sorted by question id, so finding the changes takes one pass over both.

Examples:
    >>> changes = so2docs.diff("2024-04.jsonl.gz", "2024-07.jsonl.gz")
    >>> for change in changes: ...
    >>> print(changes.summary)
"""
