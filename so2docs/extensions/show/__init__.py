"""Show questions of an output in a terminal."""
