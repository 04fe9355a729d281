"""Convert the sample dump, packed and unpacked, with the installed so2docs; check the documents.

SO2DOCS_CORE names the core to use: compiled or python.
"""

import gzip
import hashlib
import subprocess
import tempfile
from pathlib import Path

EXPECTED = "68ce2ca7de66f14e76ae96a9322dbde4650756a7ed37327aeacc150f265fe935"
"""SHA-256 of the documents."""


def main() -> None:
    """Exit with a message if the documents differ from those expected."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["so2docs", "sample", folder, "--quiet"], check=True)
        for dump in ("Posts.xml", "sample.stackexchange.com.7z"):
            output = Path(folder, f"{dump}.jsonl.gz")
            command = ["so2docs", "convert", Path(folder, dump), output, "--quiet", "--jobs", "2"]
            subprocess.run(command, check=True)
            actual = hashlib.sha256(gzip.decompress(output.read_bytes())).hexdigest()
            if actual != EXPECTED:
                raise SystemExit(f"{dump}: SHA-256 is {actual}, not {EXPECTED}")


if __name__ == "__main__":
    main()
