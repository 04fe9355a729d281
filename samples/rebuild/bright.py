"""Write BRIGHT's set for one site: `python bright.py DUMP TASK`."""

import json
import re
import sys
from html import unescape
from pathlib import Path

import so2docs

dump, task = sys.argv[1:]
folder, pages = Path("xlangai/BRIGHT"), {}
for name in ("examples", "documents"):
    (folder / name).mkdir(parents=True, exist_ok=True)
as_html = so2docs.documents(dump, min_answers=1)
as_text = so2docs.documents(dump, min_answers=1, body="text")
with open(folder / f"examples/{task}.jsonl", "w") as examples:
    for question, text in zip(as_html, as_text, strict=True):
        urls, answer = [], ""
        for html, plain in zip(question["Answers"], text["Answers"], strict=True):
            if html["Id"] == question.get("AcceptedAnswerId") or html["Score"] > 5:
                links = re.findall(r'<a\s[^<>]*?href="(https?://[^"]+)"', html["Body"])
                urls += map(unescape, links)
                answer = answer or (plain["Body"] if links else "")
        if urls := list(dict.fromkeys(urls)):
            pages.update(dict.fromkeys(urls))
            query = f"{text['Title']}\n{text['Body']}"
            ids = {
                "id": str(question["Id"]),
                "excluded_ids": ["N/A"],
                "gold_ids_long": urls,
                "gold_ids": urls,
            }
            record = {"query": query, "reasoning": "", **ids, "gold_answer": answer}
            examples.write(json.dumps(record) + "\n")
with open(folder / f"documents/{task}.jsonl", "w") as documents:
    for url in pages:
        documents.write(json.dumps({"id": url, "content": ""}) + "\n")
lines, sizes = ["---", "configs:"], ["dataset_info:"]
for name in ("examples", "documents"):
    lines += [f"- config_name: {name}", "  data_files:"]
    sizes += [f"- config_name: {name}", "  splits:"]
    paths = sorted((folder / name).glob("*.jsonl"))
    for path in paths:
        lines += [f"  - split: {path.stem}", f"    path: {name}/{path.name}"]
        count = path.read_bytes().count(b"\n")
        sizes += [f"  - name: {path.stem}", f"    num_bytes: {path.stat().st_size}"]
        sizes += [f"    num_examples: {count}"]
    total = sum(path.stat().st_size for path in paths)
    sizes += [f"  download_size: {total}", f"  dataset_size: {total}"]
# Without the sizes, `datasets` loads the records of an earlier run from its cache.
(folder / "README.md").write_text("\n".join([*lines, *sizes, "---", ""]))
