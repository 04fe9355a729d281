"""Searches in a reader's own words: the question that is meant is among the first five."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.places import DUMPS, NO_DUMPS

import so2docs

for _name in ("starlette", "jinja2", "nh3", "pygments", "math_core"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")

from so2docs.serve.query import parse  # noqa: E402
from so2docs.serve.store import Store  # noqa: E402
from so2docs.sqlite.about import read_about  # noqa: E402

SEARCHES = [
    (5, "how cold should a beer be when serving it"),
    (10, "mulled beer recipe"),
    (15, "draft beer tastes better than beer from a bottle, why"),
    (25, "what makes a stout imperial"),
    (35, "is beer vegan"),
    (40, "where does the word porter come from"),
    (55, "meaning of all malt on a label"),
    (61, "how do bitters and ales differ"),
    (70, "what does skunked beer mean"),
    (81, "effect of drinking beer on libido"),
    (86, "oldest brewery known"),
    (110, "maximum alcohol percentage possible with brewing"),
    (129, "arizona craft beers not sold in other states"),
    (153, "cleansing the palate between beers at a tasting"),
    (195, "is beer drinkable after the best before date"),
    (215, "do I need to refrigerate beer"),
    (234, "what is a certified cicerone"),
    (250, "how do brewers make light beer"),
    (257, "when did people start drinking beer cold"),
    (277, "official rankings or competitions of beers"),
    (300, "which glass for which kind of beer"),
    (329, "learning to taste beer better, training your palate"),
    (353, "keg goes stale because air is pumped into it"),
    (371, "pouring a beer hard or softly"),
    (383, "filling another brewery's growler in california"),
    (404, "beer good for building muscle"),
    (418, "does beer give you a big belly"),
    (440, "which dishes go with IPAs"),
    (470, "reason for green and clear beer bottles"),
    (480, "layers do not separate in a chocolate shock top"),
    (506, "OG and RDF on a beer label"),
    (518, "do canned beers taste of metal"),
    (532, "restaurants charging a corkage fee"),
    (546, "florida half gallon growler illegal"),
    (568, "ice cream in stout makes lots of foam"),
    (580, "good local beer in airports"),
    (607, "beers served without carbonation"),
    (637, "are there oysters in oyster stouts"),
    (665, "massachusetts growler filling laws"),
    (680, "strongest beer in the world"),
    (697, "wheat beer with coriander"),
    (708, "how to buy westvleteren at the abbey"),
    (728, "getting a good head of foam on beer"),
    (740, "does brown glass stop beer getting skunked"),
    (758, "sweet taste of cheap beer"),
    (777, "how does smoked beer get its flavour"),
    (803, "why monks brew abbey beers"),
    (835, "craft brewery in iceland"),
    (854, "must american beer labels show the alcohol content"),
    (880, "removing the paper on the neck of a bottle"),
    (927, "is mead different from beer"),
    (939, "android apps for beer"),
    (960, "ordering beers with no lemon or garnish"),
    (993, "who was the inventor of beer"),
    (1095, "measuring caffeine in coffee beer"),
    (2153, "why is belgian brewing so rich in tradition"),
    (2177, "glass, steel or ceramic growlers and flavour"),
    (3202, "why can't I buy trappist enkel"),
    (3364, "replacing guinness in a cake with another stout"),
    (3414, "why is the foam on a beer important"),
]
"""The id of a question, and a search for it."""


@pytest.mark.long
def test_searches_in_other_words_find_the_question(tmp_path: Path) -> None:
    archive = DUMPS / "archives" / "beer.stackexchange.com.7z"
    if not archive.exists():
        pytest.skip(NO_DUMPS)
    so2docs.to_sqlite(archive, tmp_path / "beer.db")
    about = read_about(str(tmp_path / "beer.db"))
    store = Store(about, about.sites[0])
    missed = []
    for question_id, words in SEARCHES:
        query = parse(words)
        rows = store.with_excerpts(query, store.hits(query, "relevance")[0][:40])
        first = list(dict.fromkeys(row["QuestionId"] for row in rows))[:5]
        if question_id not in first:
            missed.append((question_id, words, first))
    store.close()
    found = len(SEARCHES) - len(missed)
    assert len(SEARCHES) == 60
    assert found >= 50, "\n".join(map(str, [found, *missed]))
