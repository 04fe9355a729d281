"""Cards of the outputs of a small invented site, compared with reviewed files.

What depends on the version of so2docs or of pyarrow, which write other bytes, is replaced.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.golden import THREADS, compare

import so2docs

SITE = "tea.stackexchange.com"
QA: dict[str, Any] = {"recipe": "qa", "site": SITE}
SHARES = {"recipe": "thread", "site": SITE, "split": "train=0.4,validation=0.5,test=0.1"}
DATE = {"as_of": "2019-03-04"}
OUTPUTS: dict[str, dict[str, dict[str, Any]]] = {
    "filtered": {"q.jsonl": {"tags": ["kettles", "c++"], "min_score": -3, "fields": "Tags"}},
    "everything": {
        "q.jsonl": {
            "nest": "all,closings,history-text",
            **{"attribution": True, "site": "ru.stackoverflow.com", "site_field": "Site"},
        }
    },
    "as-of": {"q.jsonl": {**DATE, "drop_posts": "4", "fields": "Title"}},
    "parquet": {"q.parquet": {"fields": "Title,CreationDate,Answers.Score"}},
    "shares": {"all.jsonl": SHARES, "apart.jsonl": SHARES | {"without_linked": True}},
    "several": {
        "a.jsonl": QA,
        "b.json": QA | {"drop_fields": "metadata"},
        "c.parquet": QA,
        "d.jsonl": QA | {"settings": {"best": True}},
        "empty.jsonl": QA | {"min_score": 10**6},
    },
    "paired": {"q.jsonl": {"recipe": "pairs", "site": SITE, "settings": {"form": "paired"}}},
    "messages": {
        "q.jsonl": {"recipe": "messages", "site": SITE, "settings": {"system": "Be brief."}}
    },
    "hub": {f"{SITE}/train.jsonl": {"recipe": "hub"}, "mate/train.jsonl": {"recipe": "hub"}},
    "beir": {"set": {"recipe": "beir", "site": SITE}},
    "beir-later": {
        "set": {"recipe": "beir", "site": SITE, **DATE, "settings": {"queries_until": "2020"}}
    },
    "duplicates": {"set": {"recipe": "duplicates", "site": SITE}},
}


def without_versions(card: str) -> str:
    card = card.replace(f"so2docs {so2docs.__version__}", "so2docs VERSION")
    card = re.sub(r"\| `\w{64}` \| [\d,]+ \| `(.*\.parquet)`", r"| HASH | SIZE | `\1`", card)
    if "    - q.parquet\n" in card:
        return re.sub(r"(num_bytes|_size): \d+", r"\1: SIZE", card)
    return card


@pytest.mark.parametrize("name", OUTPUTS)
def test_cards(name: str, tmp_path: Path) -> None:
    dump = tmp_path / SITE
    shutil.copytree(THREADS, dump, ignore=lambda *_: {"records", "cards"})
    (dump / "Votes.xml").write_text("<votes></votes>", encoding="utf-8")
    out = tmp_path / "out"
    for output, options in OUTPUTS[name].items():
        (out / output).parent.mkdir(parents=True, exist_ok=True)
        so2docs.convert(dump, out / output, card=True, jobs=1, **options)
    [card] = out.rglob("README.md")
    compare(without_versions(card.read_text(encoding="utf-8")), f"cards/{name}.md")
