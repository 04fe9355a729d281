"""Worker processes: tasks in, results in order out."""
