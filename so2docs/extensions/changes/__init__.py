"""Changes between two outputs of the same site, found in one pass over both."""
