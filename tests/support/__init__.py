"""Shared by the tests: paths, generated dumps, independent oracles, processes and faults."""
