"""Turn rows of a dump into posts and records as JSON, with the compiled core or with Python."""
