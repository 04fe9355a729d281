"""Run both passes over a dump: the order of the work and its processes."""
