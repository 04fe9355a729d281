"""Turn rows of a dump into JSON posts and records, by the compiled core or by lxml and Python."""
