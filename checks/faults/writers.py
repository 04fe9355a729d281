"""The commands that write files, for rounds in which one of their system calls fails."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from support.dumps import question, row, write_dump

import so2docs
from faults import sites


@dataclass(frozen=True)
class Writer:
    """A command that writes files.

    Attributes:
        words: Arguments after `so2docs`.
        stdout: Whether standard output is one of the files to compare.
        source: Name of the input file to use as standard input; None for empty standard input.
        ignored: Files of which only the existence is checked, because they contain times.
        errors: Maximum number of lines of error messages.
        resumes: Whether the command resumes, as `convert` does.
        has_two_files: Whether the command writes two files: a kill between their renames leaves
            one, which the same command replaces only with `--force`.
    """

    words: str
    stdout: bool = False
    source: str | None = None
    ignored: tuple[str, ...] = ()
    errors: int = 1
    resumes: bool = False
    has_two_files: bool = False


WRITERS = {
    "convert": Writer("convert Posts.xml q.jsonl.gz -q -j 1"),
    "tables": Writer("convert site q.jsonl.zst --nest all -q -j 1 --work-dir work"),
    "workers": Writer("convert site q.jsonl -q -j 2"),
    "forced": Writer("convert Posts.xml former.jsonl --force -q -j 1"),
    "split": Writer("convert Posts.xml q.jsonl --split 3files -q -j 1"),
    "forced split": Writer("convert Posts.xml parts.jsonl --split 2files --force -q -j 1"),
    "parquet": Writer("convert Posts.xml q.parquet -q -j 1"),
    "json": Writer("convert Posts.xml q.json.gz -q -j 1"),
    "card": Writer("convert Posts.xml q.jsonl --card --report r.json -q -j 1", ignored=("r.json",)),
    "beir": Writer("convert site set --recipe beir -q -j 1"),
    "several": Writer(
        "convert site Other.xml --output-dir out --report r.json -q -j 1",
        ignored=("r.json",),
        errors=2,
    ),
    "stdout": Writer("convert Posts.xml - -q -j 1 --work-dir work", stdout=True),
    "stdin": Writer("convert - q.jsonl -q -j 1", source="Posts.xml"),
    "diff": Writer("diff old.jsonl new.jsonl c.jsonl.gz -q"),
    "forced diff": Writer("diff old.jsonl new.jsonl former.jsonl --force -q"),
    "diff stdout": Writer("diff old.jsonl new.jsonl -q", stdout=True),
    "sqlite": Writer("sqlite Posts.xml q.db -q"),
    "forced sqlite": Writer("sqlite Posts.xml former.db --force -q"),
    "sqlite of a dump": Writer("sqlite site q.db -q -j 1"),
    "inspect output": Writer("inspect bare.jsonl --json -q -j 1", stdout=True),
    "show": Writer("show bare.jsonl 1 --json", stdout=True),
    "flat": Writer("tables site flat -q -j 1", resumes=True),
    "flat csv": Writer("tables site flat --format csv -q -j 1", resumes=True),
    "flat database": Writer("tables site flat --format sqlite -q -j 1"),
    "diff of sites": Writer("diff olds news changes -q -j 1", errors=3, resumes=True),
    "databases of sites": Writer("sqlite site Other.xml databases -q -j 1", errors=3, resumes=True),
    "inspect": Writer("inspect site -q -j 1 --json --work-dir work", stdout=True),
    "completion": Writer("completion bash", stdout=True),
}


def make_inputs(folder: Path) -> None:
    """Make the files that the commands read or replace."""
    for path in (folder, folder / "work", folder / "tmp"):
        path.mkdir()
    (folder.with_name("sites")).mkdir()
    shutil.copytree(sites.site(folder.with_name("sites"), "small"), folder / "site")
    for name, output, count in (("Posts", "old", 120), ("Other", "new", 150)):
        posts = [
            question(n, Title=f"{name} {n % 7}", Body="b" * (n % 90), CreationDate="2019-03-01")
            for n in range(1, count)
        ]
        posts += [row(Id=count + n, PostTypeId=2, ParentId=10**6) for n in range(3)]
        dump = write_dump(folder / f"{name}.xml", *posts)
        so2docs.convert(dump, folder / f"{output}.jsonl", jobs=1)
    so2docs.convert(folder / "Other.xml", folder / "former.jsonl", jobs=1)
    so2docs.convert(folder / "Other.xml", folder / "parts.jsonl", jobs=1, split="3files")
    shutil.copy(folder / "old.jsonl", folder / "bare.jsonl")
    so2docs.to_sqlite(folder / "Other.xml", folder / "former.db")
    for name, output in (("olds", "old"), ("news", "new")):
        (folder / name).mkdir()
        for site in ("one", "two"):
            for path in (f"{output}.jsonl", f".{output}.jsonl.index"):
                shutil.copy(folder / path, folder / name / path.replace(output, site))


def prepare() -> None:
    """Make the server exit at once; called in the process of the command."""
    uvicorn.Server.run = lambda *given, **more: None
