"""Both passes over a dump: the order of the work, and the processes that do it."""
