"""Files between the passes: blocks, users, id maps."""
