"""States of posts on a date, computed from their history."""
