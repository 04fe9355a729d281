"""Files on disk between the passes: blocks, users, maps of ids."""
