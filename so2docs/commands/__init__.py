"""The commands. Each turns its options into a single library call."""

EXAMPLES = """
so2docs convert Posts.xml questions.jsonl.gz
so2docs show questions.jsonl.gz 1
so2docs convert *.7z --output-dir questions --site-field Site
zcat questions.jsonl.gz | head -1
"""
