"""Entry point of `python -m so2docs.extensions.spark`, and the script to pass to `spark-submit`."""

import sys

from so2docs.__main__ import main

if __name__ == "__main__":
    main(["spark", *sys.argv[1:]])
