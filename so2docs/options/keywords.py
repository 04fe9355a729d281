"""The keywords that the doors of the library share, each with its type and what it means.

`convert`, `convert_all` and `documents` take them, and those of the conversion on Spark; the
command line offers them under the same names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypedDict

from so2docs.options.choices import AnswersBy, BodyAs, Compression, Core, FormatName, SplitBy
from so2docs.progress import Notify
from so2docs.recipes.finding import RecipeLike

Tables = Mapping[str, str | os.PathLike[str] | None]
"""Files of tables by the tables' names; None where none was given."""


class FilterKeywords(TypedDict, total=False):
    """What is kept of a dump; of several filters, all must hold.

    Attributes:
        tags: Keep questions that have any of these tags.
        all_tags: They need all of them.
        min_score: Keep questions with this score or a higher one.
        min_answer_score: Keep answers with this score or a higher one.
        min_answers: Keep questions whose `AnswerCount` is this or more.
        max_body: Keep questions and answers whose body takes this many bytes or less, in the form
            of the dump (HTML in UTF-8): a number, or a size such as `20kB`.
        drop_fabricated: Leave out the made-up question and answer, of ids above 1,000,000,000, that
            two releases have since 2025-06-30.
        answered: Keep questions whose `AnswerCount` is 1 or more.
        accepted: Keep questions that have an `AcceptedAnswerId`.
        since: Keep questions created at this time or later: `2020-01-31`, `2020-01-31T12:00:00`, a
            `date` or a `datetime`. A date is its midnight; what has no time zone is UTC.
        until: Keep questions created before this time.
        sample: Keep this share of the questions, such as `1%` or 0.01, chosen by a hash of the id:
            the same from every dump, and part of every larger sample.
        limit: Write only so many documents, those with the lowest ids that pass the rest.
        fields: Attributes to keep, such as `Id,Title,Answers.Body`; `Answers` alone means all of
            the answers' attributes. Without any of the answers, documents have no `Answers`. What
            is nested has names such as `Comments.Text` and `Answers.Owner.DisplayName`.
        without: Attributes to leave out, such as `Body,Answers.Body,Comments.UserId`.
    """

    tags: str | Iterable[str]
    all_tags: bool
    min_score: int | None
    min_answer_score: int | None
    min_answers: int | None
    max_body: str | int | None
    drop_fabricated: bool
    answered: bool
    accepted: bool
    since: str | date | None
    until: str | date | None
    sample: str | float | None
    limit: int | None
    fields: str | Iterable[str] | None
    without: str | Iterable[str] | None


class DocumentKeywords(FilterKeywords, total=False):
    """How documents are made of what is kept.

    Attributes:
        recipe: Write the records of a known data set in place of the documents: `preferences`,
            `pairs`, `qa`, `thread` or `beir` (docs/datasets.md); or what a function of your own
            returns for a document, given as `package.module:function` or itself.
        best: Of recipe `qa`: only the answer with the highest score. With `accepted`, recipe `qa`
            takes only the accepted answer; `beir` takes it as what is relevant, and keeps the
            answers of all questions in the corpus.
        attribution: Add to each document where it is from, its licences and its authors: `Url`,
            `ContentLicense`, `Licenses`, `Authors`.
        body: `html`: as in the dump. `text` or `markdown` (needs html-to-markdown): converted. If
            None, `html`, or what the recipe asks for.
        answers_by: `id`: answers in ascending `Id`. `votes`: the accepted one first, then falling
            `Score`, then `Id`.
        nest: Tables to nest into the posts: `comments`, `links`, `votes`, `users`, or `all`.
        skip_malformed: Put rows that are not XML with the strays, instead of raising.
        strict: Raise where a character has to be repaired or a row left out.
        core: What turns rows into JSON: `compiled` (built where a C compiler was at installation),
            `python`, or `auto`: what the environment variable `SO2DOCS_CORE` says, else compiled if
            there is one. The documents are the same.
        chunk_bytes: Bytes of the dump that one task of the first pass takes.
    """

    recipe: RecipeLike | None
    best: bool
    attribution: bool
    body: BodyAs | None
    answers_by: AnswersBy
    nest: str | Iterable[str]
    skip_malformed: bool
    strict: bool
    core: Core
    chunk_bytes: int | None


class FileKeywords(DocumentKeywords, total=False):
    """In what form files are written.

    Attributes:
        format: `jsonl`: one JSON object a line. `json`: one array. `elasticsearch`: lines for the
            bulk API. `mongodb`: lines for mongoimport. `ravendb`: RavenDB's import file.
            `parquet`: typed columns (needs pyarrow).
        compression: `gzip`, `zstd` or `none`.
        index: Name of the Elasticsearch index; `questions` if None.
        level: Level of the compression. gzip: 0 to 3 by ISA-L, 4 to 9 by zlib (smaller and far
            slower). zstd: up to 19.
    """

    format: FormatName | None
    compression: Compression | None
    index: str | None
    level: int


class LocalKeywords(TypedDict, total=False):
    """How a conversion runs on this machine.

    Attributes:
        jobs: Worker processes; all cores if None, and one where the dump is too small to gain.
        spill_budget: How much of the spill, the temporary files between the two passes, may stand
            on the disk uncompressed, which is faster: bytes, or a size such as `2GB`. If None, half
            of the memory that is available, or of the free disk that nothing else needs.
        work_dir: Folder for the spill, about 0.4 times the dump, and 1.1 times what of it is not
            compressed. If None, the folder of the output; without an output, the system's temporary
            folder.
        tables: Files of tables by the names of `nest`, which nests them too; a table without one is
            looked for in the archive or folder of the posts, or beside them. Each in any form that
            the posts may have, but for standard input and open files.
        progress: Show progress bars, on stderr or in the notebook.
        site: Host name of the site, for attribution; the name of the archive or folder if None.
    """

    jobs: int | None
    spill_budget: str | int | None
    work_dir: str | os.PathLike[str] | None
    tables: Tables | None
    progress: bool
    site: str | None


class IteratorKeywords(DocumentKeywords, LocalKeywords, total=False):
    """All keywords of `documents`."""


class ConvertKeywords(FileKeywords, LocalKeywords, total=False):
    """What `convert` and `convert_all` take.

    Attributes:
        split: Write several files, `questions-00000.jsonl.gz` and so on, each of them whole and all
            together in the order of the ids. A size such as `1GB`: no file is larger, as it stands
            on the disk, unless a single document is. A number: so many files, with about as much
            JSON in each.
        split_by: Write a file for each `year` or `month` in which questions were created,
            `questions-2019.jsonl.gz` or `questions-2019-03.jsonl.gz`, each of them whole and in
            ascending question id; questions without a date go into `questions-undated.jsonl.gz`.
        force: Overwrite an existing output.
        restart: Forget what an earlier, interrupted conversion did.
        keep_spill: Keep the spill of a finished conversion, so that another one into the same
            output need not read the dump again. It may have another order of answers, limit, form
            of files, or further tables; other filters or bodies need `restart`.
        card: Write a manifest, `.OUTPUT.manifest`, and a `README.md` that Hugging Face reads beside
            the output, with counts, options and SHA-256 of input and output, which are read once
            more for that. With `force`, the place of any other `README.md` is taken.
        manifest: Put a manifest into the report (`Report.manifest`): options, schema, and size and
            SHA-256 of the files of the output, which are read once more for that. Saved as JSON,
            such a report is what `verify` takes. The output of recipe `beir` has none.
        notify: Takes messages such as how much an interrupted conversion had done.
    """

    split: str | int | None
    split_by: SplitBy | None
    force: bool
    restart: bool
    keep_spill: bool
    card: bool
    manifest: bool
    notify: Notify | None
