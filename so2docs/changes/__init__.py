"""Changes between two outputs of the same site: `diff` finds them and `patch` applies them.

Both outputs are sorted by question id, so finding the changes takes one pass over both, and
applying them takes another.

Examples:
    >>> changes = so2docs.diff("2024-04.jsonl.gz", "2024-07.jsonl.gz")
    >>> for change in changes: ...
    >>> print(changes.summary)
    >>> so2docs.patch("2024-04.jsonl.gz", "changes.jsonl.gz", "copy.jsonl.gz")
"""
