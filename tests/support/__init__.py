"""What the tests share: places, made dumps, independent oracles, ways to run and to disturb."""
