"""The commands: each turns its options into one call of the library."""

EXAMPLES = """
so2docs convert Posts.xml questions.jsonl.gz
so2docs show questions.jsonl.gz 1
so2docs convert *.7z --output-dir questions --site-field Site
zcat questions.jsonl.gz | head -1
"""
