"""A small made-up site to serve: posts, code, comments, users, links, an image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import so2docs
from support.dumps import row, write_dump
from support.places import SAMPLES

HOST = "bread.stackexchange.com"
HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy")
"""Headers of every response."""


def user(user_id: int, name: str, reputation: int) -> dict[str, Any]:
    return {"Id": user_id, "Reputation": reputation, "DisplayName": name}


ABOUT = (
    "<h1>Baker</h1><p>Of rye, since <strong>2003</strong>. Begin with "
    f'<a href="https://{HOST}/q/1">this question</a> or <a href="javascript:x">that</a>.</p>\n'
    "<table><tr><th>flour</th><td>rye</td></tr></table>"
)
WIDE = f"<pre><code>{'dough ' * 40}</code></pre><p>{'o' * 300}</p>"
PROFILE = {"Location": "Ghent, Belgium", "WebsiteUrl": "https://rye.example/ada", "AboutMe": ABOUT}
ADA, LEO = user(11, "Ada", 1204) | PROFILE, user(14, "Léo Brun", 98) | {"AboutMe": WIDE}
USERS = {11: ADA, 14: LEO}
LINKS_BODY = (
    f'<p>See <a href="https://{HOST}/questions/1/why-does-my-sourdough">the first</a>, '
    f'<a href="http://www.{HOST}/a/5">its answer</a>, <a href="/q/3">a short one</a>, '
    f'<a href="https://{HOST}/questions/1/x/4#4">another answer</a>, '
    f'<a href="https://{HOST}/questions/987654">one that is not here</a> and '
    '<a href="https://example.org/questions/1">another site</a>.</p>\n'
    '<p><img src="https://i.stack.imgur.com/loaf.png" alt="A flat loaf"></p>\n'
    "<h2>How flat</h2>\n<table><tr><th>loaf</th><td>2 cm</td></tr></table>\n"
    '<pre class="lang-py prettyprint-override"><code>def rise(hours: int) -&gt; float:\n'
    "    return hours * 0.5  # &quot;cm&quot;\n</code></pre>"
)


FORMULAS_BODY = (
    "<p>The volume after $t$ hours at rate $r$ is $V_t = V_0 e^{rt}$, so that it doubles after\n"
    "$$t_2 = \\frac{\\ln 2}{r}, \\qquad "
    "r = \\lim_{h\\to 0}\\frac{1}{V}\\frac{V(t+h)-V(t)}{h}.$$</p>\n"
    "<p>With two flours, \\(a\\) and \\(b\\):</p>\n"
    "<p>\\begin{align} V_a &amp;= \\sum_{i=1}^{n} a_i^2 &lt; \\sqrt{n+1}\\\\ "
    "M &amp;= \\begin{pmatrix} 1 &amp; \\alpha \\\\ "
    "0 &amp; \\beta \\end{pmatrix} \\end{align}</p>\n"
    "<p>Yeast makes $\\ce{C6H12O6 -> 2C2H5OH + 2CO2}$; a bag costs \\$5. This is no formula: "
    "<code>$HOME/$USER</code>, and this one has an error: $\\nosuch{x$.</p>"
)


def _application(paths: tuple[Path, ...]) -> Any:
    from so2docs.extensions.serve.app import application
    from so2docs.extensions.serve.opening import open_stores

    return application(open_stores([str(path) for path in paths]), local=True)


@contextmanager
def served(*paths: Path) -> Iterator[str]:
    """Serve databases, and yield the URL of the server."""
    from so2docs.extensions.serve.app import bind, make_server

    server = make_server(_application(paths))
    with bind("127.0.0.1", 0) as bound:
        thread = Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def asked(*paths: Path) -> Iterator[Any]:
    """Yield a client that requests the pages of databases without a server."""
    from starlette.testclient import TestClient

    with TestClient(
        _application(paths),
        base_url="http://localhost",
        raise_server_exceptions=False,
        follow_redirects=False,
    ) as client:
        yield client


def listed(page: str) -> list[int]:
    """Return the ids of the posts in a list, in its order."""
    return [int(post) for post in re.findall(r'<h3><a href="[^"]*/(?:questions|a)/(\d+)"', page)]


def count_of(page: str) -> int:
    """Return the number of results or questions that a list names."""
    found = re.search(r"([\d,]+) (?:results?|questions?|tags?|users?)\b", page)
    return int(found[1].replace(",", "")) if found else 0


def make_database(
    documents: Iterable[dict[str, Any]], path: Path, *, folder: Path | None = None, **options: Any
) -> so2docs.TablesReport:
    """Make a database of a dump with these documents, which is written next to it."""
    folder = folder or path.parent / f"dump-of-{path.stem}"
    write_tables(folder, documents)
    return so2docs.to_sqlite(folder, path, jobs=1, **options)


def write_tables(folder: Path, documents: Iterable[dict[str, Any]]) -> None:
    """Write the posts, comments, links, bounties and users of documents as tables of a dump."""
    rows: dict[str, list[bytes]] = {"Posts": []}
    users: dict[int, dict[str, Any]] = {}

    def add(table: str, record: dict[str, Any], **values: Any) -> None:
        for key in ("Owner", "LastEditor", "User"):
            if record.get(key):
                users[record[key]["Id"]] = record[key]
        plain = {k: v for k, v in record.items() if type(v) in (str, int)} | values
        rows.setdefault(table, []).append(row(**plain))

    for question in documents:
        answers = question.get("Answers", ())
        tags = "".join(f"<{tag}>" for tag in question.get("Tags", ()))
        defaults = {"PostTypeId": 1, "AnswerCount": len(answers)}
        add("Posts", defaults | question, **({"Tags": tags} if tags else {}))
        for post in answers:
            add("Posts", {"PostTypeId": 2, "ParentId": question["Id"]} | post)
        for post in (question, *answers):
            for comment in post.get("Comments", ()):
                add("Comments", {"PostId": post["Id"]} | comment)
            for link in post.get("Links", ()):
                add("PostLinks", {k: v for k, v in link.items() if k != "LinkType"})
            for number, bounty in enumerate(post.get("Bounties", ())):
                values = {"Id": 100 * post["Id"] + number, "PostId": post["Id"], "VoteTypeId": 8}
                add("Votes", values | bounty, BountyAmount=bounty["Amount"])
    if users:
        rows["Users"] = [
            row(**{k: v for k, v in user.items() if v is not None}) for user in users.values()
        ]
    for table, lines in rows.items():
        write_dump(folder / f"{table}.xml", *lines)


def documents() -> list[dict[str, Any]]:
    """Make the sample of eight questions, with more content."""
    questions = list(so2docs.read(SAMPLES / "posts.jsonl"))
    for question in questions:
        for post in (question, *question["Answers"]):
            for key in ("Owner", "LastEditor"):
                if post.get(f"{key}UserId") in USERS:
                    post[key] = USERS[post[f"{key}UserId"]]
    text = f"Have you tried `autolyse`? See [this](https://{HOST}/a/5) & <b>that</b>."
    comment = {"Id": 90, "Score": 3, "CreationDate": "2024-01-08T08:00:00.000", "Text": text}
    questions[0] |= {
        "Comments": [comment | {"UserId": 14, "User": LEO}],
        "Links": [{"Id": 7, "PostId": 1, "RelatedPostId": 3, "LinkTypeId": 1}],
        "Bounties": [{"Amount": 50, "CreationDate": "2024-05-09T00:00:00.000", "UserId": 11}],
    }
    flat = {
        "Id": 900,
        "CreationDate": "2023-05-01T10:00:00.000",
        "Score": 2,
        "Title": 'Links & <images> of "flat" loaves',
        "Tags": ["bread", "c++"],
        "Body": LINKS_BODY,
        "OwnerUserId": 14,
        "Owner": LEO,
    }
    comment = {"Id": 91, "CreationDate": "2024-05-03T08:00:00.000", "UserId": 11, "User": ADA}
    rising = {
        "Id": 901,
        "CreationDate": "2024-05-02T10:00:00.000",
        "Score": 7,
        "Title": "How long until $V_t = 2V_0$ for a dough that rises at $\\frac{dV}{dt} = rV$?",
        "Tags": ["mathematics", "fermentation"],
        "Body": FORMULAS_BODY,
        "OwnerUserId": 11,
        "ClosedDate": "2024-05-04T10:00:00.000",
        "Owner": ADA,
        "Comments": [comment | {"Text": "Is $r$ *constant*, as in $e^{rt}$?"}],
        "Links": [{"Id": 8, "PostId": 901, "RelatedPostId": 1, "LinkTypeId": 3}],
    }
    return [*questions, flat, rising]


def make(folder: Path) -> Path:
    """Make a database of the site."""
    path = folder / f"{HOST}.db"
    everything = "posts,comments,links,votes,users"
    make_database(documents(), path, site=HOST, only=everything)
    return path


ATTACKS = [
    "<script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "<svg onload=\"document.title='ran'\"><script>document.title='ran'</script></svg>",
    "<svg><style><img src=x onerror=document.title='ran'></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=document.title='ran'>",
    "<a href=\"javascript:document.title='ran'\">click</a>",
    "<a href=\" java\nscript:document.title='ran'\">click</a>",
    "<a href=\"data:text/html,<script>document.title='ran'</script>\">click</a>",
    "<a href=vbscript:x onclick=document.title='ran' onmouseover=document.title='ran'>x</a>",
    "<iframe src=\"javascript:parent.document.title='ran'\"></iframe>",
    "<iframe srcdoc=\"<script>parent.document.title='ran'</script>\"></iframe>",
    "<object data=\"data:text/html,<script>parent.document.title='ran'</script>\"></object>",
    "<embed src=\"javascript:document.title='ran'\">",
    "<form action=\"javascript:document.title='ran'\"><button autofocus>go</button></form>",
    "<input autofocus onfocus=\"document.title='ran'\">",
    "<details open ontoggle=\"document.title='ran'\">x</details>",
    "<style>body{display:none} @import url(http://127.0.0.1:9/x.css);</style>",
    '<p style="position:fixed;inset:0;background:url(http://127.0.0.1:9/x.png)">x</p>',
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<meta http-equiv=refresh content='0;url=/x'>",
    "<base href=http://127.0.0.1:9/>",
    "<p id=search name=q class=top>clobber</p><img name=body><form id=main></form>",
    "<pre class=\"lang-html\"><code>&lt;script&gt;document.title='ran'&lt;/script&gt;</code></pre>",
    "<pre class='x\" onclick=1'><code class=lang-php>&lt;?php '&lt;img onerror=a&gt;'</code></pre>",
    "</div></main></body></html><script>document.title='ran'</script>",
    "<<script>script>document.title='ran'<</script>/script>",
    "<p title='\"><script>document.title=`ran`</script>'>x</p>",
    "<!--><script>document.title='ran'</script>-->",
    "<a href='https://x/\"onmouseover=\"document.title=1'>q</a>",
    "<img alt='\"><script>document.title=`ran`</script>' src='https://h/x\"onerror=\"alert(1)'>",
    "<p>unclosed <b><i><a href='//127.0.0.1:9/x'>a<p>b</ul></table>",
    "<svg/onload=document.title='ran'//",
    "\x02<script>document.title='ran'</script>\x03",
    "{{ 7*7 }} {% for x in y %}",
    "$\\text{<script>document.title='ran'</script>}$",
    "$\\text{&lt;img src=x onerror=document.title='ran'&gt;}$",
    "$\\href{javascript:document.title='ran'}{click} \\style{position:fixed}{x} \\class{top}{x}$",
    "$$\\color{red\" onclick=\"document.title='ran'}{x} \\unicode{x3c} \\def\\x{\\x\\x}\\x$$",
    "\\begin{array}{c'><script>document.title='ran'</script>}x\\end{array}",
    "\\(<b>x\\)</b> $<svg onload=document.title='ran'>$ `$<script>document.title='ran'</script>$`",
]


def hostile() -> list[dict[str, Any]]:
    """Make documents with scripts that must not run: in bodies, titles, names and so on."""
    texts = []
    for number, attack in enumerate(ATTACKS, 1):
        owner = user(number, attack, number) | dict.fromkeys(PROFILE, attack)
        comment = {"Id": number, "Text": attack, "UserId": number, "User": owner}
        markdown = f"[{attack}](https://x/{attack}) `{attack}` https://x/{attack} **{attack}**"
        texts.append(
            {
                "Id": number,
                "CreationDate": attack,
                "LastEditDate": attack,
                "Score": number,
                "Title": f"hostile {attack}",
                "Tags": [attack, f"tag-{number}"],
                "Body": f"<p>{attack}</p>" if number % 2 else attack,
                "OwnerUserId": number,
                "Owner": owner,
                "ContentLicense": attack,
                "ClosedDate": attack,
                "Comments": [comment, comment | {"Id": 1000 + number, "Text": markdown}],
                "Answers": [
                    {"Id": 5000 + number, "Score": 1, "Body": attack, "OwnerDisplayName": attack}
                ],
            }
        )
    return texts
