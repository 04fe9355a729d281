"""`python -m so2docs`."""

from so2docs.cli import main

if __name__ == "__main__":
    main()
