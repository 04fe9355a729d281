"""Recipes for training on answers: `qa`, `messages`, `pairs`, `preferences`.

`qa` has TRL's standard prompt-completion form (https://huggingface.co/docs/trl/dataset_formats). It
has a record for each answer, the accepted answer first, then by score; on request, only for the
accepted or the best answer. TRL joins prompt and completion unchanged, and trains on the tokens of
the completion alone. The prompt therefore ends in a line `Answer:`, and the completion starts with
a space: no tokenizer like that of GPT-2 or GPT-4 puts both into one token.
`messages` has the same content in TRL's conversational form for chat templates: a system message if
requested, a user message with the question, and an assistant message with the answer.

`pairs` has TRL's standard preference form, with an explicit prompt; on request, with messages in
place of texts (the conversational form). The score of `preferences` decides which answer is better.
A question gives at most ten pairs, as in lvwerra/stack-exchange-paired on the Hugging Face Hub. The
pairs are drawn with the question's id as the seed, so that every run draws the same pairs.

With `form=paired`, a pair has the columns of lvwerra/stack-exchange-paired, as described in its
card: the body of the question without its title, the better answer as `response_j`, the worse as
`response_k`, and `date` and `metadata` as in HuggingFaceH4/stack-exchange-preferences, from which
it was made. TRL's examples for Llama load it (https://github.com/huggingface/trl,
`stack_llama/scripts` and `stack_llama_2/scripts` in its research projects). The column
`attribution`, which that set lacks, has the licences and authors.

`preferences` has the form of HuggingFaceH4/stack-exchange-preferences on the Hugging Face Hub, as
described in its card and made by its script `make_stack_exchange.py`. It contains the questions
with at least two answers and at least two different scores, with bodies as HTML. Authors without a
user id are user -1, called "Community" in every dump; authors missing from Users.xml are
"(user-not-found)".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Annotated, Any, NotRequired, TypedDict

from so2docs.domain import rank, score
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import BEST, Document, Recipe, Record, Setting

_END_OF_PROMPT, _START_OF_COMPLETION = "\n\nAnswer:", " "
"""Text between question and answer, which TRL joins without adding any."""


def qa(question: Document) -> Iterator[Record]:
    """Make a record for each answer, the accepted answer first, then by descending score."""
    asked = posts.prompt(question) + _END_OF_PROMPT
    for answer, metadata in _with_metadata(question):
        completion = _START_OF_COMPLETION + posts.text(answer)
        yield {"prompt": asked, "completion": completion, "metadata": metadata}


def _with_metadata(question: Document) -> Iterator[tuple[Document, Record]]:
    """Yield each answer with the metadata of the question and the answer, in the order of `qa`."""
    metadata, base = posts.metadata(question), posts.site_url(question)
    for answer in rank(question):
        yield answer, {**metadata, "answer": posts.side(answer, question, base)}


_ABOUT_ANSWER = "id, URL, score, licence and authors of the answer"
_ABOUT_RECORD = "source and attribution of the record"


class AnswerMetadata(posts.Metadata):
    """Metadata of a question and an answer."""

    answer: Annotated[posts.Side, _ABOUT_ANSWER]


class Completion(TypedDict):
    """A record of `qa`."""

    prompt: Annotated[str, "question: title and body"]
    completion: Annotated[str, "answer to the question"]
    metadata: Annotated[AnswerMetadata, _ABOUT_RECORD]


QA = Recipe(
    "qa",
    qa,
    Completion,
    optional_tables=("users",),
    fields=posts.FIELDS,
    body="markdown",
    attributed="posts",
    without_banner=True,
    min_answers=1,
    settings=(BEST,),
    variants={"accepted": {"answers": "accepted"}},
    summary="a question and an answer, as prompt and completion",
    tasks=("question-answering", "text-generation"),
)


def messages(question: Document, *, system: str | None = None) -> Iterator[Record]:
    """Make a conversation for each answer, the accepted answer first, then by descending score.

    If comments are nested, the comments on the answer by its author and by the asker continue the
    conversation, up to the last comment by the author.

    Args:
        question: The document.
        system: System message at the start of each conversation.
    """
    first = [] if system is None else [_message("system", system)]
    first.append(_message("user", posts.prompt(question)))
    base = posts.site_url(question)
    for answer, metadata in _with_metadata(question):
        sides = [*first, _message("assistant", posts.text(answer))]
        if comments := _dialogue(answer, question):
            for role, turn in groupby(comments, key=itemgetter(0)):
                texts = [posts.comment_text(comment) for _, comment in turn]
                if sides[-1]["role"] == role:
                    texts.insert(0, sides.pop()["content"])
                sides.append(_message(role, "\n\n".join(texts)))
            metadata["comments"] = [posts.origin(comment, base) for _, comment in comments]
        yield {"messages": sides, "metadata": metadata}


def _dialogue(answer: Document, question: Document) -> list[tuple[str, Document]]:
    """List the comments on an answer by the asker and by the answer's author, with their roles.

    The last comment is by the answer's author. The list is empty if the same user wrote question
    and answer, or if one of the two users is unknown.
    """
    roles = {answer.get("OwnerUserId"): "assistant", question.get("OwnerUserId"): "user"}
    if len(roles) < 2 or None in roles:
        return []
    turns = [
        (roles[comment["UserId"]], comment)
        for comment in answer.get("Comments", ())
        if comment.get("UserId") in roles
    ]
    while turns and turns[-1][0] == "user":
        turns.pop()
    return turns


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


class Message(TypedDict):
    """A message of a conversation."""

    role: Annotated[str, "`system`, `user` or `assistant`"]
    content: Annotated[str, "text of the message"]


class ConversationMetadata(AnswerMetadata):
    """Metadata of a question, an answer and its comments."""

    comments: NotRequired[
        Annotated[
            list[posts.Origin], "licence, authors and date of each comment in the conversation"
        ]
    ]


class Conversation(TypedDict):
    """A record of `messages`."""

    messages: Annotated[list[Message], "conversation that starts with the question and an answer"]
    metadata: Annotated[ConversationMetadata, _ABOUT_RECORD]


MESSAGES = replace(
    QA,
    name="messages",
    function=messages,
    record=Conversation,
    settings=(
        Setting("system", "Start each conversation with this system message.", str),
        BEST,
    ),
    summary="a question and an answer, as a conversation (SFT)",
)

MOST_PAIRS = 10


def pairs(question: Document, **selection: Any) -> Iterator[Record]:
    """Make records from up to ten pairs of answers to a question, the best answers first.

    Args:
        question: The document.
        selection: Arguments of `draw_pairs`.
    """
    for asked, chosen, rejected, others in _pairs(question, **selection):
        yield {
            "prompt": asked + _END_OF_PROMPT,
            "chosen": _START_OF_COMPLETION + chosen,
            "rejected": _START_OF_COMPLETION + rejected,
            **others,
        }


def conversational(question: Document, **selection: Any) -> Iterator[Record]:
    """Make the records of `pairs` with messages in place of texts."""
    for asked, chosen, rejected, others in _pairs(question, **selection):
        yield {
            "prompt": [_message("user", asked)],
            "chosen": [_message("assistant", chosen)],
            "rejected": [_message("assistant", rejected)],
            **others,
        }


def paired(question: Document, **selection: Any) -> Iterator[Record]:
    """Make records with the columns of lvwerra/stack-exchange-paired from up to ten pairs."""
    for _, chosen, rejected, others in _pairs(question, **selection):
        attribution = others["metadata"]
        sides = {
            "response_j": attribution.pop("chosen"),
            "response_k": attribution.pop("rejected"),
        }
        yield {
            "qid": question["Id"],
            "question": posts.text(question),
            **_dated(question),
            "response_j": chosen,
            "response_k": rejected,
            "attribution": {**attribution, **sides},
        }


def _pairs(question: Document, **selection: Any) -> Iterator[tuple[str, str, str, Record]]:
    """Yield for each pair: question, better answer, worse answer, other fields of the record."""
    scored = [(posts.preference_score(answer, question), answer) for answer in rank(question)]
    scored.sort(key=lambda pair: -pair[0])
    drawn = draw_pairs([score for score, _ in scored], question["Id"], **selection)
    if not drawn:
        return
    asked, metadata = posts.prompt(question), posts.metadata(question)
    base = posts.site_url(question)
    places = {place for pair in drawn for place in pair}
    sides = {place: posts.side(scored[place][1], question, base) for place in places}
    for better, worse in drawn:
        (score_chosen, chosen), (score_rejected, rejected) = scored[better], scored[worse]
        others = {
            "score_chosen": score_chosen,
            "score_rejected": score_rejected,
            "metadata": {**metadata, "chosen": sides[better], "rejected": sides[worse]},
        }
        yield asked, posts.text(chosen), posts.text(rejected), others


def draw_pairs(
    scores: list[int], seed: int, *, min_margin: int = 1, best: bool = False
) -> list[tuple[int, int]]:
    """Draw up to ten pairs of answers; return the indexes of the better and the worse of each pair.

    Pairs are numbered instead of listed, because a question may have a million answers. Every
    setting applies before the draw: only pairs that pass all of them are numbered.

    Args:
        scores: Scores of the answers, in descending order.
        seed: Seed of the draw.
        min_margin: Minimum difference between the scores of a pair.
        best: Draw only pairs whose better answer is the first.
    """
    rising = [-score for score in scores]
    starts = [
        bisect_right(rising, score + min_margin - 1) for score in (rising[:1] if best else rising)
    ]
    ends = list(accumulate(len(scores) - start for start in starts))
    drawn = []
    for number in draw_numbers(ends[-1] if ends else 0, MOST_PAIRS, seed):
        better = bisect_right(ends, number)
        drawn.append((better, len(scores) + number - ends[better]))
    return drawn


def draw_numbers(total: int, most: int, seed: int) -> list[int]:
    """Draw up to `most` of the numbers below `total`; return them in ascending order."""
    import random

    # Use only random(): the other functions of the module give different results in different
    # versions of Python.
    draw = random.Random(seed).random
    numbers = set(range(total)) if total <= most else set[int]()
    while len(numbers) < min(most, total):
        numbers.add(int(draw() * total))
    return sorted(numbers)


class PairMetadata(posts.Metadata):
    """Metadata of a question and two answers."""

    chosen: Annotated[posts.Side, f"{_ABOUT_ANSWER} that is better"]
    rejected: Annotated[posts.Side, f"{_ABOUT_ANSWER} that is worse"]


def _pair_of(text: Any) -> Any:
    """Make the `TypedDict` of a record of `pairs` whose texts have this type."""
    score_of = "score of the {} answer, like `pm_score` of `preferences`"
    columns = {
        "prompt": Annotated[text, "question: title and body"],
        "chosen": Annotated[text, "better answer"],
        "rejected": Annotated[text, "worse answer"],
        "score_chosen": Annotated[int, score_of.format("better")],
        "score_rejected": Annotated[int, score_of.format("worse")],
        "metadata": Annotated[PairMetadata, _ABOUT_RECORD],
    }
    return TypedDict("Pair", columns)  # type: ignore[operator]


class Attribution(posts.Metadata):
    """Metadata of a question and two answers of stack-exchange-paired."""

    response_j: Annotated[posts.Side, f"{_ABOUT_ANSWER} that is better"]
    response_k: Annotated[posts.Side, f"{_ABOUT_ANSWER} that is worse"]


class Paired(TypedDict):
    """A record of `pairs` with `form=paired`."""

    qid: Annotated[int, "id of the question on its site"]
    question: Annotated[str, "body of the question, without its title"]
    date: Annotated[str, "date of the question"]
    metadata: Annotated[list[str], "URLs of the question, the site and the author of the question"]
    response_j: Annotated[str, "better answer"]
    response_k: Annotated[str, "worse answer"]
    attribution: Annotated[Attribution, "source, licence and authors of the question"]


PAIRS = replace(
    QA,
    name="pairs",
    function=pairs,
    record=_pair_of(str),
    min_answers=2,
    settings=(
        Setting(
            "form",
            "Write the columns of TRL with texts or with messages, or those of "
            "lvwerra/stack-exchange-paired.",
            str,
            "trl",
            choices=("trl", "conversational", "paired"),
        ),
        Setting(
            "min_margin", "Minimum difference between the scores of two answers.", int, 1, least=1
        ),
        replace(BEST, help="Use only pairs whose better answer is the best of all."),
    ),
    variants={
        "form=conversational": {"function": conversational, "record": _pair_of(list[Message])},
        "form=paired": {
            "function": paired,
            "record": Paired,
            "fields": (*QA.fields, "CreationDate", "OwnerUserId"),
        },
    },
    summary="two answers to a question, the better one first, for preference training (DPO)",
)


_NOBODY = -1
_NAME_OF_NOBODY, _NOT_FOUND = "Community", "(user-not-found)"


def preferences(question: Document) -> Iterator[Record]:
    """Make one record from a question that has at least two answers with different scores."""
    answers = question["Answers"]
    if len({score(answer) for answer in answers}) < 2:
        return
    host = posts.site_url(question)
    yield {
        "qid": question["Id"],
        "question": posts.text(question),
        "answers": [_preference(answer, question, host) for answer in answers],
        **_dated(question),
    }


def _dated(question: Document) -> Record:
    """Return the date of a question, and the URLs of the question, its site and its author."""
    host = posts.site_url(question)
    return {
        "date": str(question.get("CreationDate", ""))[:10].replace("-", "/"),
        "metadata": [question["Url"], host, f"{host}/users/{_user_id(question)}/"],
    }


def _preference(answer: Document, question: Document, host: str) -> dict[str, Any]:
    user_id = _user_id(answer)
    usual = _NAME_OF_NOBODY if user_id == _NOBODY else _NOT_FOUND
    return {
        "answer_id": answer["Id"],
        "text": posts.text(answer),
        "pm_score": posts.preference_score(answer, question),
        "selected": posts.is_accepted(answer, question),
        "author": str(answer.get("Owner", {}).get("DisplayName", usual)),
        "author_id": user_id,
        "author_profile": f"{host}/users/{user_id}",
    }


def _user_id(post: Document) -> int:
    user_id = post.get("OwnerUserId")
    return user_id if isinstance(user_id, int) else _NOBODY


class RatedAnswer(TypedDict):
    """An answer in a record of `preferences`."""

    answer_id: Annotated[int, "id of the answer on its site"]
    text: Annotated[str, "body of the answer"]
    pm_score: Annotated[int, "log2(1 + votes), rounded, plus 1 if accepted; -1 for negative votes"]
    selected: Annotated[bool, "whether the asker accepted the answer"]
    author: Annotated[str, "name of the author"]
    author_id: Annotated[int, "id of the author; -1 if unknown"]
    author_profile: Annotated[str, "URL of the profile of the author"]


class Preference(TypedDict):
    """A record of `preferences`."""

    qid: Annotated[int, "id of the question on its site"]
    question: Annotated[str, "body of the question"]
    answers: Annotated[list[RatedAnswer], "answers to the question"]
    date: Annotated[str, "date of the question"]
    metadata: Annotated[list[str], "URLs of the question, the site and the author"]


_OF_ANSWERS = ("Id", "Body", "Score", "OwnerUserId")
PREFERENCES = Recipe(
    "preferences",
    preferences,
    Preference,
    optional_tables=("users",),
    fields=(
        *("Id", "Body", "AcceptedAnswerId", "CreationDate", "OwnerUserId"),
        *(f"Answers.{name}" for name in _OF_ANSWERS),
    ),
    attributed="posts",
    min_answers=2,
    summary="a question with its answers and their scores",
    tasks=("question-answering", "text-generation"),
)
