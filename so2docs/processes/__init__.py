"""Worker processes, which run tasks and return the results in order."""
