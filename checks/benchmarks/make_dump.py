"""Write a realistic Stack Exchange `Posts.xml` of any size.

The same arguments give the same bytes. Text is drawn word by word from tables of escaped words, in
C-level loops. It is not drawn from a pool of paragraphs, because a compressor with a window longer
than the pool would reach unrealistic ratios. The program keeps the tables in memory, four bytes per
question and, to shuffle rows, one part of the file.
"""

import argparse
import functools
import itertools
import random
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryFile

START = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n'
END = b"</posts>"
ROW = b'  <row Id="%d" PostTypeId="%d"%b CreationDate="%b" Score="%b"%b Body="&lt;p&gt;'
ROW_END = b'%b LastActivityDate="%b"%b%b ContentLicense="CC BY-SA %b" />\r\n'
ROW_BYTES = 1550
QUESTION, ANSWER = 1, 2
# These posts end every dump since 2025-06: meta.stackexchange.com/questions/412018
MADE_UP = (QUESTION, 1000000001, 0, 0, ""), (ANSWER, 1000000010, 0, 0, "answer_without_parent_id")
SLOTS = 1 << 16  # Slots of a body table: two random bytes are an index as they are.
FEW = 1 << 13  # Slots of other tables: they fit into the CPU cache (20 % faster).
TICKS = 1 << 16  # Ticks per day. With five ticks per id, 17 years are enough for 97 GB.
BUFFER = 1 << 20
PART_BYTES = 64 << 20  # A shuffle holds one part in memory. 20 GB need 300 open files.

COMMON = "the to i a is and in it of this that for on with my you have be not as can if are do code"
FOREIGN = "café naïve señor größe 日本語 东京 данные ελληνικά 😀 🚀 — “quoted” … →"
ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#xA;", "\r": "&#xD;"}
)
# The forms of a table, each after its share of the slots; the last form takes the remaining slots.
# {a} is a word, {A} a capitalized word, {f} a word that is not ASCII, {i} an identifier, {n} a
# number, {c} a small number, {u} a user id, {t} tags.
PROSE = (
    "70:, {a}¦84:. {A}¦12:? {A}¦18: {n}¦4: {f}¦44: <code>{i}</code>¦8: <em>{a}</em>¦12: {i}()¦"
    '8: <strong>{a} {a}</strong>¦8: "{a} {a}"¦4: {a} &amp; {a}¦40:.</p>\n\n<p>{A}¦'
    '8: <a href="https://{a}.com/{a}/{n}" rel="nofollow noreferrer">{a}</a>¦'
    "4:.</p>\n\n<ul>\n<li>{A} {a}</li>\n<li>{A} {a}</li>\n</ul>\n\n<p>{A}¦640: {a} {a}¦1020: {a}"
)
CODE = (
    "60: = {i}¦80:({i}¦95:);\n    ¦90:.{i}¦50:, {i}¦100: {a}¦25: = \"{a}\"¦15:('{a} {a}')¦"
    "40: = {n};\n¦20:[{n}]¦60:\n        ¦25: {\n        ¦25:\n    }\n¦15:if ({i} == ¦20:return ¦"
    "10:// {a} {a}\n¦8: &lt; {n}¦8: -&gt; {i}¦6: &amp;&amp; ¦18:\n{i} ¦.3:\r\n¦.1:\t{i}¦230:{i}"
)
TO_CODE, TO_PROSE = "1::</p>\n\n<pre><code>", "1:\n</code></pre>\n\n<p>{A}"
PROSE_END, CODE_END = b'.&lt;/p&gt;&#xA;"', b'&#xA;&lt;/code&gt;&lt;/pre&gt;&#xA;"'

Pools = dict[str, Sequence[object]]
Rows = Iterator[tuple[int, bytes]]  # post type, row
Post = tuple[int, int, int, int, str]  # type, Id, ParentId, AcceptedAnswerId (or 0), stray reason


@dataclass(frozen=True, slots=True)
class Made:
    """Counts of the rows of a dump, as in the report of its conversion; `rows` includes strays."""

    rows: int
    questions: int
    answers: int
    others: int
    strays: dict[str, int]


def plan(rng: random.Random, rows_expected: int) -> Iterator[Post]:
    """Yield posts endlessly in ascending order of id.

    The first `rows_expected` rows have about five orphans and two repeated ids.
    """
    draw, questions, promised = rng.random, array("I"), dict[int, int]()
    answers, left_out = 0, 1
    # Other ids: 37 % questions, 18 % answers to recent questions, 18 % to any, 27 % unused.
    for post_id in itertools.count(4):
        if parent := promised.pop(post_id, 0):
            yield ANSWER, post_id, parent, 0, ""
        elif not questions or (pick := draw()) < 0.366:
            # Reserve the id of the answer. If the file ends before it, the row is missing, as in
            # real dumps.
            accepted = post_id + 1 + int(3800 * draw() ** 4)
            if draw() < 0.5 or promised.setdefault(accepted, post_id) != post_id:
                accepted = 0
            questions.append(post_id)
            yield QUESTION, post_id, 0, accepted, ""
            if len(questions) == rows_expected // 8:
                yield QUESTION, post_id, 0, accepted, "repeated_id"
        elif pick < 0.7273:
            answers += 1
            recent = min(1200, len(questions)) * draw() ** 4
            parent = questions[-1 - int(recent if pick > 0.542 else draw() * len(questions))]
            orphan = answers % (rows_expected // 15 + 1) == 0
            reason = "question_not_in_dump" if orphan else ""
            yield ANSWER, post_id, left_out if orphan else parent, 0, reason
            if answers == rows_expected // 5:
                yield ANSWER, post_id, parent, 0, "repeated_id"
        elif pick < 0.73:
            yield rng.choice((4, 5) * 8 + (3, 6, 7)), post_id, 0, 0, ""
        else:
            left_out = post_id


def vocabulary(rng: random.Random) -> Pools:
    """Make random values for each field of the forms.

    The frequencies of words follow Zipf's law, and most numbers are small.
    """
    parts = "b d g h l m n r s t v w st tr pr", "a e o u ea ou", "l m n nd r s st"
    syllables = ["".join(part) for part in itertools.product(*map(str.split, parts))]
    counts = rng.choices((1, 2, 3), (1, 3, 1), k=9000)
    words = COMMON.split() + ["".join(rng.choices(syllables, k=count)) for count in counts]
    zipf = [1 / (rank + 8) for rank in range(len(words))]
    names = [a + b.title() for a, b in zip(words, reversed(words), strict=True)]
    drawn = rng.choices(words, zipf, k=SLOTS)
    skewed = [rng.paretovariate(0.8) for _ in range(FEW)]
    tags = rng.choices(words[50:2050], zipf[:2000], k=FEW + 5)
    return {
        "a": drawn,
        "A": [word.title() for word in drawn],
        "t": ["|".join(dict.fromkeys(tags[at : at + 1 + at % 5])) for at in range(FEW)],
        "f": FOREIGN.split(),
        "i": rng.choices(names, zipf, k=SLOTS),
        "n": [int(number * 10) % 100_000 for number in skewed],
        "c": [int(number - 1) % 30 for number in skewed],
        "u": [int(20e6 * rng.random() ** 3) + 1 for _ in range(FEW)],
    }


def fill(forms: str, slots: int = FEW, *, pools: Pools, rng: random.Random) -> list[bytes]:
    """Fill forms with random values to make a table of `slots` strings.

    Each form gets the share of the slots that precedes it in `forms`.
    """
    entries = [entry.partition(":") for entry in forms.split("¦")]
    unit = slots / sum(float(share) for share, _, _ in entries)
    table: list[bytes] = []
    for share, _, form in entries:
        count = slots - len(table) if form == entries[-1][2] else round(unit * float(share))
        columns = [rng.choices(pools[field], k=count) for field in re.findall("{(.)}", form)]
        values = itertools.chain.from_iterable(zip(*columns, strict=True))
        text = (re.sub("{.}", "%s", form) + "\0") * count % tuple(values)
        table += text.encode().split(b"\0")[:-1]
    once: dict[bytes, bytes] = {}
    return [once.setdefault(piece, piece) for piece in table]


def rows(size_bytes: int, seed: int, tally: Counter[int | str]) -> Rows:
    """Yield rows with their post types until the file has `size_bytes`.

    Each row is counted in `tally`: a stray by its reason, any other row by its post type.
    """
    rng = random.Random(f"{seed} content")
    table = functools.partial(fill, pools=vocabulary(rng), rng=rng)
    prose, code = table(PROSE.translate(ESCAPES), SLOTS), table(CODE.translate(ESCAPES), SLOTS)
    to_code, to_prose = table(TO_CODE.translate(ESCAPES)), table(TO_PROSE.translate(ESCAPES))
    flow = (prose, to_code, PROSE_END), (code, to_prose, CODE_END)
    owner = table('1: OwnerUserId="-1"¦5: OwnerDisplayName="user{u}"¦494: OwnerUserId="{u}"')
    editor = table('1: LastEditorUserId="{u}" LastEditDate="')
    title = table('1: Title="{A} {a} {a} {a} {a} {a}" Tags="|{t}|" AnswerCount="{c}"')
    counts = table('4: CommentCount="{c}"¦1: CommentCount="{c}" FavoriteCount="{c}"')
    comments, views = table('1: CommentCount="{c}"'), table('1: ViewCount="{n}"')
    score, opening = table("1:-1¦1:-2¦30:{c}"), table("1:{A}")
    sizes = [int(rng.lognormvariate(4.0, 1)) + 1 for _ in range(FEW)]
    longest = max(sizes) + 6
    delays = [int(900 * TICKS * rng.random() ** 9) + 60 for _ in range(FEW)]
    days = [f"{date(2008, 7, 31) + timedelta(day)}T".encode() for day in range(20 * 365)]
    clock = [
        b"%02d:%02d:%02d.%03d" % (ms // 3_600_000, ms // 60_000 % 60, ms // 1000 % 60, ms % 1000)
        for ms in range(0, 86_400_000, 86_400_000 // TICKS)
    ]
    picks, at, few, room = memoryview(b""), 0, FEW - 1, size_bytes - len(START) - len(END)
    regular = plan(random.Random(f"{seed} plan"), size_bytes // ROW_BYTES)
    fitting = itertools.takewhile(lambda _: room > 2 * ROW_BYTES, regular)
    for post_type, post_id, parent, accepted, stray in itertools.chain(fitting, MADE_UP):
        if at + longest > len(picks):
            picks, at = memoryview(rng.randbytes(BUFFER // 8)).cast("H"), 0
        a, b, c, d, e, f = picks[at : at + 6]
        tick = post_id * 5 % (17 * 365 * TICKS) + a % 5
        created = changed = days[tick // TICKS] + clock[tick % TICKS]
        licence = b"4.0" if tick > 3562 * TICKS else b"3.0" if tick > 981 * TICKS else b"2.5"
        owned = owner[a & few]
        if b % 8 < 3:
            tick += delays[a & few]
            changed = days[tick // TICKS] + clock[tick % TICKS]
            owned += editor[b & few] + changed + b'"'
        if post_type == QUESTION:
            link = b' AcceptedAnswerId="%d"' % accepted if accepted else b""
            viewed, titled, closing = views[c & few], title[d & few], counts[e & few]
            closing += b' ClosedDate="%b"' % changed if c < 2000 else b""
        else:
            link = b' ParentId="%d"' % parent if parent else b""
            viewed, titled, closing = b"", b"", comments[e & few]
        closing += b' CommunityOwnedDate="%b"' % changed if d < 1000 else b""
        head = ROW % (post_id, post_type, link, created, score[b & few], viewed)
        parts, at, end = [head, opening[f & few]], at + 6, at + 6 + sizes[f & few]
        for text, turn, body_end in itertools.cycle(flow):
            start, at = at, min(at + 20 + picks[at] % 128, end)
            parts += [text[pick] for pick in picks[start:at]]
            parts.append(body_end if at == end else turn[picks[at] & few])
            if at == end:
                break
        row = b"".join(parts) + ROW_END % (owned, changed, titled, closing, licence)
        room -= len(row)
        tally[stray or post_type] += 1
        yield post_type, row


def reordered(source: Rows, folder: Path, count: int, rng: random.Random | None) -> Iterator[bytes]:
    """Yield rows by post type or, with `rng`, shuffled, through `count` temporary files."""
    with ExitStack() as stack:
        parts = [stack.enter_context(TemporaryFile(dir=folder)) for _ in range(count)]
        for post_type, row in source:
            parts[int(rng.random() * count) if rng else min(post_type, count) - 1].write(row)
        for part in parts:
            part.seek(0)
            yield from rng.sample(lines := list(part), len(lines)) if rng else part
            part.close()


def make_dump(path: str | Path, size_bytes: int, *, seed: int = 1, order: str = "sorted") -> Made:
    """Write a dump of about `size_bytes`, to within a row, and return the counts of its rows.

    Args:
        path: Path of the file. Unless the order is "sorted", temporary files of the same total size
            are written next to it.
        size_bytes: Size in bytes; below 200,000, some kinds of strays may be missing.
        seed: Seed of all random values.
        order: Order of the rows: "sorted" by id, "grouped" by post type, or "shuffled". The rows
            are the same in every order.
    """
    tally: Counter[int | str] = Counter()
    source, folder = rows(size_bytes, seed, tally), Path(path).absolute().parent
    ordered = {
        "sorted": (row for _, row in source),
        "grouped": reordered(source, folder, 3, None),
        "shuffled": reordered(source, folder, size_bytes // PART_BYTES + 1, random.Random(seed)),
    }[order]
    with open(path, "wb", buffering=BUFFER) as out:
        out.writelines(itertools.chain([START], ordered, [END]))
    strays = {kind: count for kind, count in tally.items() if isinstance(kind, str)}
    others = tally.total() - tally[QUESTION] - tally[ANSWER] - sum(strays.values())
    return Made(tally.total(), tally[QUESTION], tally[ANSWER], others, strays)


def size(text: str) -> int:
    """Parse a size such as 300MB, 1.5GB or 64MiB; return the number of bytes."""
    if match := re.fullmatch(r"(\d+\.?\d*) *([KMGT]?)(I?)B?", text.upper()):
        return round(float(match[1]) * (1024.0 if match[3] else 1000.0) ** " KMGT".find(match[2]))
    raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 300MB or 1.5GiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a realistic Posts.xml of any size.")
    parser.add_argument("path", metavar="OUT.xml")
    parser.add_argument("--size", dest="size_bytes", type=size, required=True, help="300MB, 2GiB")
    parser.add_argument("--order", choices=("sorted", "grouped", "shuffled"), default="sorted")
    parser.add_argument("--seed", type=int, default=1)
    print(make_dump(**vars(parser.parse_args())))
