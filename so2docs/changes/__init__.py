"""What changed between two outputs of one site, and how to apply it.

Both outputs are sorted by question id, so one pass over both says it, and another applies it.

Examples:
    >>> changes = so2docs.diff("2024-04.jsonl.gz", "2024-07.jsonl.gz")
    >>> for change in changes: ...
    >>> print(changes.summary)
    >>> so2docs.patch("2024-04.jsonl.gz", "changes.jsonl.gz", "copy.jsonl.gz")
"""
