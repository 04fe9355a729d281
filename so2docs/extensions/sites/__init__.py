"""Many sites: one loop over dumps, outputs or databases, and folders of outputs."""
