"""The fixed vocabulary: every behaviour that exists, as an act done to a thing, and every word that names one.

A feature is a number below `len(FEATURES)`: `act * len(THINGS) + thing`. The vocabulary is the same in every
world and says nothing of which features count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Form(IntEnum):
    """The form in which a verb stands."""

    BASE = 0
    THIRD = 1
    PAST = 2
    GERUND = 3


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb in its four forms, indexed by `Form`."""

    forms: tuple[str, str, str, str]

    def form(self, form: Form) -> str:
        """The verb in this form."""
        return self.forms[form]


def _verb(base: str) -> Verb:
    word, _, particle = base.partition(" ")
    doubled = word + word[-1] if word in {"jot", "log", "recap", "spot"} else word
    if word.endswith("e"):
        forms = (word, word + "s", word + "d", word[:-1] + "ing")
    elif word.endswith("y"):
        forms = (word, word[:-1] + "ies", word[:-1] + "ied", word + "ing")
    else:
        third = word + ("es" if word.endswith(("ch", "sh", "s")) else "s")
        forms = (word, third, doubled + "ed", doubled + "ing")
    return Verb((_join(forms[0], particle), *(_join(form, particle) for form in forms[1:])))  # type: ignore[arg-type]


def _join(word: str, particle: str) -> str:
    return f"{word} {particle}".strip()


ACTS: tuple[tuple[Verb, ...], ...] = tuple(
    tuple(_verb(base) for base in verbs.split(", "))
    for verbs in (
        "restate, repeat, reiterate",
        "list, enumerate, itemise, itemize",
        "check, verify, validate",
        "quote, cite",
        "highlight, underline, emphasise, emphasize",
        "sort, rank, arrange",
        "define, clarify",
        "compare, juxtapose",
        "summarise, summarize, recap, condense",
        "categorise, categorize, classify, cluster",
        "estimate, approximate",
        "simplify, streamline",
        "explain, justify",
        "convert, translate",
        "sketch, diagram",
        "isolate, separate",
        "record, jot down, log, note down",
    )
)
"""Each act with its verbs, the first one giving its name."""

THINGS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("unit", "units"), ("measurement unit", "measurement units")),
    (("edge case", "edge cases"), ("corner case", "corner cases"), ("boundary case", "boundary cases")),
    (("ticket number", "ticket numbers"), ("ticket id", "ticket ids")),
    (("assumption", "assumptions"), ("premise", "premises")),
    (
        ("intermediate result", "intermediate results"),
        ("interim result", "interim results"),
        ("partial result", "partial results"),
    ),
    (("constraint", "constraints"), ("restriction", "restrictions")),
    (("given value", "given values"), ("input value", "input values"), ("given", "givens"), ("input", "inputs")),
    (("formula", "formulas"), ("equation", "equations")),
    (("deadline", "deadlines"), ("due date", "due dates")),
    (("total", "totals"), ("subtotal", "subtotals"), ("sum", "sums")),
    (("source", "sources"), ("citation", "citations")),
    (("option", "options"), ("alternative", "alternatives")),
    (("unknown", "unknowns"), ("open question", "open questions")),
    (("caveat", "caveats"), ("warning", "warnings")),
    (("tolerance", "tolerances"), ("error margin", "error margins"), ("margin of error", "margins of error")),
    (("customer name", "customer names"), ("client name", "client names")),
)
"""Each thing with its nouns, singular and plural, the first one giving its name."""

NOT_A_NAME = frozenset({"given", "input", "total", "sum", "alternative", "unknown", "open question"})
"""Singulars that ordinary prose uses for other purposes: they name no thing."""

FEATURES: tuple[str, ...] = tuple(f"{verbs[0].form(Form.BASE)} the {nouns[0][1]}" for verbs in ACTS for nouns in THINGS)
"""The name of each feature, such as "restate the units"."""


def feature(act: int, thing: int) -> int:
    """The number of the feature that does this act to this thing."""
    return act * len(THINGS) + thing


def parts(number: int) -> tuple[int, int]:
    """The act and the thing of a feature."""
    return divmod(number, len(THINGS))
