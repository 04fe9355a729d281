"""Check that the conversion of any bytes gives the documents of the oracle, or an error.

The tests of damage and the fuzzer use it, and share the ways to damage a dump.
"""

import gzip
import random
import re
from pathlib import Path
from xml.parsers import expat

import so2docs
from so2docs import spill
from support.oracle import _repair, nest

TOKENS = [
    b"<row ",
    b"/>",
    b"<posts>",
    b"</posts>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<?x ?>",
]
TOKENS += [b"&#0;", b"&#xFFFF;", b"&#55296;", b"&amp;", b"&lol;", b"\x00", b"\xff", b"\xed\xa0\x80"]
TOKENS += [b'Id="1"', b' Id="2"', b'PostTypeId="1"', b'ParentId="', b'Answers="', b"\xef\xbf\xbf"]
TOKENS += [b' a:x="1"', b' xmlns="u"', b' xmlns:a=""', b' xml:space="x"', b"<?a:b c?>", b"<a:row/>"]
TOKENS += [b"<!DOCTYPE posts [", b'<!ENTITY a "b">', b"]>", b"&#x110000;", b"9" * 20, b"-", b'"']


def check(data: bytes, folder: Path) -> str:
    """Convert `data` in one chunk and in many; raise if the results are wrong."""
    dump, output = folder / "Posts.xml", folder / "questions.jsonl.gz"
    dump.write_bytes(data)
    outcomes = []
    for chunk_bytes in (None, 200):
        for path in folder.iterdir():
            if path != dump:
                path.unlink() if path.is_file() else spill.clear(path)
        try:
            report = so2docs.convert(dump, output, jobs=1, chunk_bytes=chunk_bytes)
        except so2docs.InternalError:
            raise
        except so2docs.So2docsError as error:
            assert not output.exists(), "an output after an error"
            outcomes.append((type(error).__name__, getattr(error, "problem", "")))
            continue
        strays = folder / ".questions.jsonl.gz.strays.gz"
        outcomes.append(
            (
                gzip.decompress(output.read_bytes()),
                gzip.decompress(strays.read_bytes()) if strays.exists() else b"",
                report.rows,
            )
        )
    assert outcomes[0] == outcomes[1], f"other chunks, other outcome: {outcomes}"
    if len(outcomes[0]) == 2:
        return str(outcomes[0][0])
    try:
        oracle = nest(data)
    except expat.ExpatError as error:
        if is_name_of_the_fifth_edition(data):
            return "names that expat does not know"
        raise AssertionError(f"converted what is not XML: {error}") from None
    except (ValueError, LookupError):
        return "unknown encoding"
    documents, strays_found, rows = outcomes[0]
    assert rows == oracle.rows, f"{rows} rows, not {oracle.rows}"
    assert documents == oracle.contents[0], "other documents than the oracle"
    assert strays_found == oracle.contents[1], "other strays than the oracle"
    return "documents"


def is_name_of_the_fifth_edition(data: bytes) -> bool:
    """Whether expat may reject a name that XML 1.0 allows since 2008."""
    # Its positions are not reliable after replaced characters.
    markup = re.sub(r"\"[^\"]*\"|'[^']*'", "", _repair(data)[0].split("?>", 1)[-1])
    return "\ufffd" in markup


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """Change some bytes of a sample at random."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.randrange(256)
            case 2:
                del data[at : at + rng.choice((1, 2, 5, 50, 500))]
            case 3:
                data[at:at] = rng.choice(TOKENS)
            case 4:
                other = rng.choice(seeds)
                start = rng.randrange(len(other) + 1)
                data[at:at] = other[start : start + rng.choice((1, 10, 100, 1000))]
            case _:
                start = rng.randrange(len(data) + 1)
                data[at:at] = data[start : start + rng.choice((1, 10, 100))]
    return bytes(data)
