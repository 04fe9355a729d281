"""The commands: options on the command line -> one call of the library."""
