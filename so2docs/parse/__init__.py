"""Turn rows of a dump into posts and records as JSON, by the compiled core or lxml and Python."""
