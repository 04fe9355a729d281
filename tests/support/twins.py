"""Run both cores on the same bytes: the compiled core must agree with the reference.

The tests and the fuzzers share it. As a script, it writes their seeds into a folder.
"""

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from so2docs.dump.dump import open_dump
from so2docs.extensions.markdown.conversion import to_markdown
from so2docs.extensions.sqlite.texts import separate_words
from so2docs.extensions.tables.columns import TableColumns
from so2docs.parse import core, posts, rows, table_rows
from so2docs.parse.keys import KEY
from so2docs.parse.posts import RecordBuffer
from so2docs.schema import DUMP, RESERVED, TABLES, USER_ATTRIBUTES
from support.places import SAMPLES

if core.built() == "compiled":
    from so2docs.parse import _core

ROW = '<row Id="7" PostTypeId="1" %s />'

# Parts of a row, and whether they are canonical.
TAKEN = [
    "",
    'Body=""',
    'Body="> \' ]]> --> /> = \x7f \x85 \ufffd \ufeff \U0010ffff \U0001fffe \ufdd0"',
    'Body="&lt;&gt;&amp;&quot;&apos;"',
    'Body="&amp;lt; &amp;#60; &#38;lt; &#60;b&#62; &#38;#38;"',
    'Body="&#9;&#10;&#13;&#xA;&#xD;&#x9;&#xa;&#0000009;&#x00000D7;&#x1F600;&#x10FFFF;&#xe9;"',
    'Body="&#34;&#92;&#x5C;\\ \\\\ \\n /"',
    'Body="a\tb\nc\rd\r\ne\n\rf\r\r\n"',
    'Body="é日本😀 ünï"',
    'Body="' + "x" * 100_000 + '"',
    'Body="' + "é\\" * 70_000 + '"',
    'New="1" _a.b-c9="2" A="x" a="y"',
    # The second name is the start of the first, and both have the same hash.
    'aD="1" a="2"',
    "n" * 256 + '="1"',
    " ".join(f'a{number}="1"' for number in range(62)),
    'Score="-1" ViewCount="0" FavoriteCount="999999999999999999"',
    'OwnerUserId="-999999999999999999"',
    *(
        f'Tags="{tags}"'
        for tags in ("", "|", "||", "|||", "|a|b|", "|a||b|", "a|b", "|a", "a|", "x")
    ),
    *(f'Tags="{tags}"' for tags in ("&lt;", "&gt;", "&lt;&gt;", "&lt;&gt;&lt;&gt;", "&lt;é|b>")),
    *(f'Tags="&lt;a{tags}"' for tags in ("&gt;&lt;b&gt;", ">&#60;b>", "&gt;&gt;&lt;b&gt;")),
    'Tags="|\\|&quot;|"',
]
NOT_TEXT = """
    < & &lt &LT; &nbsp; &#; &#x; &#X9; &#xG; &#x4G; &#4A; &#-9; &#00000009; &#99999999999999999999;
"""
LEFT = [
    *(f'Body="{value}"' for value in [*NOT_TEXT.split(), "&# 9;"]),
    *(f'Body="&#{code};"' for code in ("0", "1", "8", "31", "x0", "x1F", "xB", "xC", "xE")),
    *(f'Body="&#{code};"' for code in ("xD800", "xDFFF", "xFFFE", "xFFFF", "x110000", "1114112")),
    *(f'Body="{raw}"' for raw in ("\0", "\x01", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff")),
    "Body='x'",
    'Body = "x"',
    "Body=x",
    "Body",
    'Body=""x=""',
    'Body="" Body=""',
    *(f'{name}="7"' for name in ("Id", "xml", "XMLnew", "xmlns", "xml:space", "x:y", "é", "1", "")),
    '-a="1"',
    *(f'{name}="x"' for name in sorted(RESERVED)),
    'Site="x"',
    *(
        f'Score="{score}"'
        for score in ("", "+1", "01", "-0", "-01", "-", "1 ", "1.0", "é", "&#49;")
    ),
    f'Score="1{"0" * 18}"',
    "n" * 257 + '="1"',
    " ".join(f'a{number}="1"' for number in range(63)),
]


def slice_of(sample: Path) -> bytes:
    dump = open_dump(str(sample))
    return sample.read_bytes()[dump.start : dump.end]


@dataclass(slots=True)
class Outcome:
    """The results of slices, and the facts that a chunk records about them."""

    posts: RecordBuffer = field(default_factory=lambda: RecordBuffer(reserved=RESERVED | {"Site"}))
    rows: int = 0
    last_id: int | None = None
    repaired: int = 0
    malformed: int = 0


def by_reference(outcome: Outcome, data: bytes) -> None:
    for part in rows.parse(data):
        if isinstance(part, rows.Malformed):
            outcome.malformed += 1
        elif part.rows:
            outcome.rows += len(part.rows)
            outcome.repaired += part.repaired
            last_id = rows.row_id(part.rows[-1])
            outcome.last_id = outcome.last_id if last_id is None else last_id
            posts.add(outcome.posts, part.rows)


def by_compiled(outcome: Outcome, data: bytes) -> bool:
    """Whether the compiled core accepts the slice; if not, nothing may have changed."""
    added = core.add_fast(data, outcome.posts)
    if added is None:
        return False
    count, last_id = added
    outcome.rows += count
    outcome.last_id = outcome.last_id if last_id is None else last_id
    return True


def is_taken(data: bytes) -> bool:
    """Whether the compiled core accepts a slice; asserts the result of the reference."""
    compiled, reference = Outcome(), Outcome()
    if not by_compiled(compiled, data):
        assert compiled == Outcome(), data
        return False
    by_reference(reference, data)
    assert compiled == reference, data
    assert list(compiled.posts.buckets) == list(reference.posts.buckets), data
    assert list(compiled.posts.other_types) == list(reference.posts.other_types), data
    return True


ROWS = {
    "comments": '<row Id="7" PostId="5" %s />',
    "links": '<row Id="7" PostId="5" %s />',
    "votes": '<row Id="7" PostId="5" VoteTypeId="2" %s />',
    "users": '<row Id="7" %s />',
}
"""A row of each table; a row of votes has one attribute more."""

TABLE_TAKEN = [
    'Score="-3" UserId="9" Text="a &lt; b" UserDisplayName="x" ContentLicense="CC"',
    'CreationDate="2020" RelatedPostId="12" LinkTypeId="1"',
    'LinkTypeId="3" RelatedPostId="-12"',
    'LinkTypeId="-999999999999999999" Tags="|a|b|"',
    'BountyAmount="+x" UserId="4"',
    'DisplayName="é" Reputation="101" CreationDate="2020" AboutMe="&lt;p&gt;&#xA;" Views="x"',
    'Answers="x" Comments="x" Owner="x" User_="x" LinkTypes="x" PostIds="x" VoteTypeIds="x"',
]


def questions(post_ids: Iterable[int]) -> dict[int, int]:
    """Map some posts to questions; the others are not in the dump."""
    return {post_id: post_id // 3 for post_id in post_ids if post_id % 5}


def replace_questions(post_ids: "array[int]", question_ids: "array[int]") -> None:
    """Do the same in an array of integers."""
    places = questions(post_ids)
    question_ids[:] = array("q", map(places.get, post_ids, question_ids))


def users_by_reference(data: bytes) -> list[tuple[int, bytes]] | None:
    """Return the ids and JSON of users; None if a user is unusable or not XML."""
    users: list[tuple[int, bytes]] = []
    strays = RecordBuffer()
    for part in rows.parse(data):
        if isinstance(part, rows.Malformed):
            return None
        for row in table_rows.reject(strays, TABLES["users"], part.rows):
            kept = {name: row[name] for name in row if name in USER_ATTRIBUTES}
            users.append((row["Id"], orjson.dumps(kept)))
    return None if strays.strays else users


def is_taken_of(table: str, data: bytes) -> bool:
    """Whether the compiled core accepts a slice of a table; asserts the result of the reference."""
    if table == "users":
        read = core.read_records(data, TABLES["users"])
        if read is None:
            return False
        at, records = 0, []
        for user_id, _, _, size_and_kind in KEY.iter_unpack(read[1]):
            records.append((user_id, read[2][at : at + (size_and_kind >> 4)]))
            at += size_and_kind >> 4
        assert records == users_by_reference(data), data
        return True
    compiled, reference = RecordBuffer(), RecordBuffer()
    result = core.read_records(data, TABLES[table])
    if result is None:
        return False
    added, keys, json = result
    bounties: list[table_rows.Row] = []
    if table == "votes":  # Rows with an amount take the place of JSON.
        bounties += [row for part in rows.parse(json) for row in _sound(part)] if json else []
        json = b""
    else:
        compiled.filtered = added[0] - len(keys) // KEY.size
    core.file_records([(keys, json)], compiled, replace_questions)
    count, last_id = 0, None
    for part in rows.parse(data):
        assert isinstance(part, rows.Rows), data
        count += len(part.rows)
        last_id = rows.row_id(part.rows[-1]) if part.rows else last_id
        if table == "votes":
            with_bounty = [dict(row) for row in part.rows if "BountyAmount" in row]
            assert bounties[: len(with_bounty)] == with_bounty, data
            del bounties[: len(with_bounty)]
            table_rows.add_votes(reference, part.rows, questions)
        else:
            usable = table_rows.reject(reference, TABLES[table], part.rows)
            table_rows.add_rows(reference, TABLES[table], usable, questions)
    assert (compiled, added) == (reference, (count, last_id)), data
    assert not bounties, data
    return True


def _sound(part: rows.Rows | rows.Malformed) -> list[table_rows.Row]:
    assert isinstance(part, rows.Rows)
    return part.rows


def is_taken_in_columns(table: str, data: bytes) -> bool:
    """Whether the compiled core makes columns of a slice; asserts the result of the reference."""
    columns = TableColumns(DUMP[table])
    result = columns.parse(data)
    if result is None:
        return False
    batch, last_id = result
    batch.arrow().validate(full=True)
    (part,) = rows.parse(data)
    assert isinstance(part, rows.Rows), data
    assert None not in map(rows.row_id, part.rows), data
    assert len(batch) == len(part.rows), data
    if part.rows:
        assert batch.rows() == columns.from_rows(part.rows).rows(), data
        assert batch.arrow().equals(columns.from_rows(part.rows).arrow()), data
        assert last_id == rows.row_id(part.rows[-1]), data
    return True


DATES_TAKEN = """
    2008-07-31T21:42:52.667 2000-02-29T23:59:59 1969-12-31T23:59:59.9 0001-01-01T00:00:00.01
    9999-12-31T23:59:59.999 2100-02-28T00:00:00.000
"""
COLUMNS_TAKEN = [
    *(f'CreationDate="{date}" Date="{date}"' for date in DATES_TAKEN.split()),
    'TagBased="True" IsRequired="False" IsModeratorOnly="True"',
    'New="&quot;&#xA;\\é" New2="" Tags="&lt;a&gt;&lt;b&gt;" Reputation="-12"',
    'Name="" Tags="" Text="&quot;&#xA;&#xD;&#x9; \\ é 😀&amp;"',
]
"""Attributes that the compiled core makes columns of."""

DATES_LEFT = """
    2008-07-31 2008-07-31_21:42:52 2008-07-31T21:42:52. 2008-07-31T21:42:52.6670 2100-02-29T00:00:00
    2008-07-31T21:42:52Z 2008-02-30T21:42:52 2008-13-01T21:42:52 2008-00-01T21:42:52
    2008-01-00T21:42:52 2008-01-01T24:00:00 2008-01-01T23:60:00 2008-01-01T23:59:60
    0000-01-01T00:00:00 +008-01-01T00:00:00 2008-01-01T00:00:00,5 \uff12008-01-01T00:00:00
"""
COLUMNS_LEFT = [
    *(f'CreationDate="{date.replace("_", " ")}"' for date in ["", *DATES_LEFT.split()]),
    *(f'TagBased="{text}"' for text in ("", "true", "TRUE", "1", "Truer", "True ")),
    'Score="1.5"',
    'Score="99999999999999999999"',
    'New="1" New="2"',
    'Score="1" Score="2"',
]
"""Attributes of posts or badges that are left to the reference."""


MARKDOWN = {
    "10<sup>15</sup> of CO<sub>2</sub>": "10<sup>15</sup> of CO<sub>2</sub>",
    "write &lt;div&gt; or a &lt; b": r"write \<div> or a < b",
    "(40*50) and *p": r"(40\*50) and \*p",
    "a * b, snake_case and _x": r"a * b, snake_case and \_x",
    "&amp;lt; and R&amp;D": r"\&lt; and R&D",
    "C:\\dir\\*.txt": "C:\\dir\\\\\\*.txt",
    "<p># no heading</p>": r"\# no heading",
    "<p>1. no list</p>": r"1\. no list",
    "<p>- no list\n+ nor this\n> nor that</p>": "\\- no list\n\\+ nor this\n\\> nor that",
    "<p>a<br>b</p>": "a  \nb",
    "<p><strong>Note:</strong> x</p>": "**Note:** x",
    "<p><strong>Note:</strong>x</p>": "<strong>Note:</strong>x",
    "<p><strong>Note</strong>x: a<em>b</em>c (<em>d:</em>)</p>": "**Note**x: a*b*c (*d:*)",
    "<p><strong>(a)</strong>, <em>“b”</em>.</p>": "**(a)**, *“b”*.",
    "<p><strong>1 ~ </strong>a<del>b</del>c</p>": "<strong>1 ~</strong> a<del>b</del>c",
    "<p>a\n2. b\n1. c\n01) d\n3) e</p>": "a\n2. b\n1\\. c\n01\\) d\n3) e",
    "<p>a<em> b </em>c</p>": "a *b* c",
    "<p>un<em>frigging</em>real</p>": "un*frigging*real",
    "<p><em>a</em><em>b</em></p>": "<em>a</em><em>b</em>",
    "<p><code>a`b</code> <code>`</code></p>": "``a`b`` `` ` ``",
    "<p><code>a &lt; b*c*</code></p>": "`a < b*c*`",
    '<p><a href="http://a.com/x_(y)">x</a></p>': "[x](http://a.com/x_(y))",
    '<p><a href="http://a.com/x_(y">x</a></p>': r"[x](http://a.com/x_\(y)",
    '<p>Hi!<a href="http://a.com">x</a></p>': r"Hi\![x](http://a.com)",
    '<p><a href="http://a.com/_b_">http://a.com/_b_</a></p>': "<http://a.com/_b_>",
    '<p>[a](b) <img src="c" alt="d [e]"></p>': "[a\\](b) ![d \\[e\\]](c)",
    '<p>a <a href="b"><img src="c" alt="d"></a> e</p>': "a [![d](c)](b) e",
    '<p>a\n<a href="b">\n\n<img src="c">\n\n</a> e</p>': "a\n[![](c)](b)\ne",
    "<p>a\n<em>\nb</em>\nc <del>d </del> \ne</p>": "a\n*b*\nc ~~d~~\ne",
    '<a href="b"><p><img src="c"></p></a>\n\n<p>d</p>': "[![](c)](b)\n\nd",
    '<p>a <a href="b"></a>c<em><a href="d"> </a></em></p>': "a c",
    "<h2>C#</h2><h3>a #</h3>": "## C#\n\n### a \\#",
    "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>": "- a\n  - b\n- c",
    "<ul><li><p>a</p></li><li><p>b</p><p>c</p></li></ul>": "- a\n\n- b\n\n  c",
    "<ol start='3'><li>a</li></ol><ol><li>b</li></ol>": "3. a\n\n1) b",
    "<p>a</p><hr><blockquote><p>b</p><ul><li>c</li></ul></blockquote>": "a\n\n---\n\n> b\n>\n> - c",
    "<pre><code>a &lt; *b*\n\n  c\n</code></pre>": "```\na < *b*\n\n  c\n```",
    '<pre class="lang-py prettyprint-override"><code>x</code></pre>': "```py\nx\n```",
    "<pre><code>```\n</code></pre>": "````\n```\n````",
    "<pre><b>x</b> y</pre>": "```\nx y\n```",
    "<ol><li><pre><code>a\n\tb</code></pre></li></ol>": "1. ```\n   a\n   \tb\n   ```",
    "<table><tr><th>a</th><th align='right'>b</th></tr><tr><td>c|d</td><td>e</td></tr></table>": (
        "| a | b |\n| --- | --: |\n| c\\|d | e |"
    ),
    "<table><tr><td>a</td></tr></table>": "<table><tr><td>a</td></tr></table>",
    "<p>a <del>b</del> ~5 ~~</p>": r"a ~~b~~ \~5 \~\~",
    "": "",
    "<p></p>": "",
}
"""Bodies and their Markdown."""

FORMULAS = {
    r"<p>$\left(a\right)_A$ *b* $0&lt;t$</p>": r"$\left(a\right)_A$ \*b\* $0<t$",
    r"<p>$$a\\b$$ \(c_1 [d](e)\)</p>": r"$$a\\b$$ \(c_1 [d](e)\)",
    "<p>$$a\n\n= b\n- c$$</p>": "$$a\n= b\n- c$$",
    "<ul><li>$a\n+  b$</li></ul>": "- $a\n  +  b$",
    "<blockquote><p>\\[a\n&gt; b\\]</p></blockquote>": "> \\[a\n> > b\\]",
    r"<p>\begin{align*}a&amp;=b_1\\c&amp;=d\end{align*}</p>": (
        r"\begin{align*}a&=b_1\\c&=d\end{align*}"
    ),
    r"<p>\begin{document}a_ *b\end{document}</p>": r"\begin{document}a_ \*b\end{document}",
    "<h2>$a\nb_*$ #</h2>": "## $a b_*$ \\#",
    r"<p>costs \$5 and \$6_ $_x$</p>": r"costs \\$5 and \\$6_ $_x$",
    "<p>only $5*</p>": r"only $5\*",
    "<p>$_a<br>*b$</p>": "$\\_a  \n\\*b$",
    "<p><strong>$a*b$</strong> $_a</p><p>_b$</p>": "**$a*b$** $\\_a\n\n\\_b$",
    "<p><kbd>$_a$</kbd> <code>$_a$</code> <code>x<b>$_a$</b></code></p>": (
        "<kbd>$\\_a$</kbd> `$_a$` <code>x<strong>$\\_a$</strong></code>"
    ),
    "<pre><code>$_a$</code></pre>": "```\n$_a$\n```",
    '<p><a href="b">$_a]$</a></p>': "[$_a]$](b)",
    "<table><tr><th>$_a\nb$</th></tr><tr><td>$|c|$</td></tr></table>": (
        "| $_a b$ |\n| --- |\n| $\\|c\\|$ |"
    ),
    f"<p>${'_x' * 2000}$</p><p>${'_x' * 1999}$</p>": (f"$\\{'_x' * 2000}$\n\n${'_x' * 1999}$"),
    f"<p>{'$_y {' * 60}</p>": "$\\_y {" * 60,
}
"""Bodies with formulas between `$`, and their Markdown."""

SIGNS = ("", "$", r"\$")


def is_markdown_taken(body: str) -> bool:
    """Whether the compiled core accepts a body; asserts the results of the references."""
    text = _core.to_text(body)
    assert text is None or text == separate_words(body), body
    for sign in SIGNS:
        markdown = _core.to_markdown(body, sign)
        assert markdown is None or markdown == to_markdown(body, sign), (body, sign)
    return _core.to_markdown(body, "") is not None


def write_seeds(folder: Path) -> None:
    """Write a file for each input of the tests and each row of the samples.

    The first byte tells the fuzzers the type of the others: 0 is a slice, 1 are attributes.
    """
    short = [attributes.encode() for attributes in TAKEN + LEFT if len(attributes) < 4096]
    seeds = [b"\1" + attributes for attributes in short]
    seeds += [b"\0" + ROW.encode() % attributes for attributes in short]
    for sample in sorted(SAMPLES.glob("*.xml")):
        data = slice_of(sample)
        seeds += [b"\0" + data[:4096], *(b"\0" + row for row in data.splitlines())]
    for form in ROWS.values():
        seeds += [b"\0" + (form % attributes).encode() for attributes in TABLE_TAKEN]
    for attributes in COLUMNS_TAKEN + COLUMNS_LEFT:
        seeds.append(b"\0" + f'<row Id="7" {attributes} />'.encode())
    seeds += [b"\0" + body.encode() for body in (*MARKDOWN, *FORMULAS)]
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
