"""The offline reader: a finished database as pages for a browser, and as JSON."""
