"""Helpers for tests: paths, generated dumps, independent oracles, processes and faults."""
