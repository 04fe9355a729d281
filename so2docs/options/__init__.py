"""What a conversion is asked to do: literals and checks, and nothing that does it."""
