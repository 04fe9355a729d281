"""Files of the spill, which the passes exchange: blocks, users and id maps."""
