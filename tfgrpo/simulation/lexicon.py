"""The words a reader of instructions and reports must know, each with what it does to a sentence.

Built once from the vocabulary and the cue words below. It knows words, not sentences: `parsing` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum, auto
from typing import NamedTuple

from tfgrpo.simulation.vocabulary import ACTS, NOT_A_NAME, THINGS, Form


class Kind(IntEnum):
    """What a word or phrase does."""

    BREAK = 0
    ACT = auto()
    THING = auto()
    NEGATE = auto()
    COMMA = auto()
    AND = auto()
    OR = auto()
    CLAUSE = auto()
    """Opens a subordinate clause: what follows is no verdict on what came before."""
    CONDITION = auto()
    """The same, and the behaviour inside it is judged by what follows."""
    RESET = auto()
    STRONG = auto()
    WEAK = auto()
    REPORT = auto()
    MODAL = auto()
    NOTHING = auto()
    """A phrase that would mislead if its words were read one by one."""


class Symbol(NamedTuple):
    """What a phrase does. `value` is the act or the thing; `form` that of an act or of a negating verb."""

    kind: Kind
    value: int = 0
    form: Form = Form.BASE


_NEGATORS = (
    "not, never, no, without, neither, cannot, can't, don't, doesn't, didn't, won't, shouldn't, mustn't, isn't, "
    "aren't, wasn't, weren't, instead of, rather than, hardly, needn't, nobody, none, nothing, "
    # Words of failure or harm turn a sentence in the same way; two of them make it right again.
    "hurt, hurts, harm, harms, harmful, mistake, mistakes, error, errors, wrong, wrongly, worse, worst, bad, weak, "
    "weaker, useless, pointless, needless, unnecessary, unneeded, wasteful, waste, wastes, counterproductive, risky, "
    "backfires, incorrect, misleading, unhelpful, failed, failing, failure, failures, losing, poor, poorer, "
    "detrimental, costly, discouraged, undesirable, unsuccessful, mislead, misleads, distracts"
)
_NEGATING_VERBS = (
    # base, third person, past, gerund
    ("avoid", "avoids", "avoided", "avoiding"),
    ("skip", "skips", "skipped", "skipping"),
    ("omit", "omits", "omitted", "omitting"),
    ("forget", "forgets", "forgot", "forgetting"),
    ("fail to", "fails to", "failed to", "failing to"),
    ("neglect", "neglects", "neglected", "neglecting"),
    ("refrain", "refrains", "refrained", "refraining"),
    ("stop", "stops", "stopped", "stopping"),
    ("drop", "drops", "dropped", "dropping"),
    ("prevent", "prevents", "prevented", "preventing"),
    ("forgo", "forgoes", "forwent", "forgoing"),
    ("ignore", "ignores", "ignored", "ignoring"),
    ("dispense with", "dispenses with", "dispensed with", "dispensing with"),
    ("leave out", "leaves out", "left out", "leaving out"),
    ("steer clear of", "steers clear of", "steered clear of", "steering clear of"),
    ("abstain", "abstains", "abstained", "abstaining"),
    ("resist", "resists", "resisted", "resisting"),
    ("decline to", "declines to", "declined to", "declining to"),
)
_JUDGED = "answers, rollouts, attempts, solutions, responses, those, ones, runs"
_CUES: Mapping[Kind, str] = {
    Kind.NEGATE: _NEGATORS,
    Kind.BREAK: "., !, ?, ;, \n, but, however, yet, whereas, although, though",
    Kind.COMMA: ":, (, ), \u2014, \u2013, then",
    Kind.AND: "and, plus, as well as",
    Kind.OR: "or, nor",
    Kind.CLAUSE: "because, since, as, so, so that, while, unless, until, lest, due to, to get, to reach, to have",
    Kind.CONDITION: "if, when, whenever, where, once, "
    + ", ".join(f"{noun} {word}" for noun in _JUDGED.split(", ") for word in ("that", "which", "who")),
    Kind.RESET: "instead",
    Kind.STRONG: "always, ever, important, crucial, essential, without fail, vital, strictly, "
    "every time, certainly, under any circumstances, under no circumstances, at all costs",
    Kind.WEAK: "consider, maybe, perhaps, might, may, could, optionally, try to, sometimes, if possible, when possible",
    Kind.REPORT: "i, we, did",
    Kind.MODAL: "should, ought, please, you, let",
    Kind.NOTHING: "no matter, not only, not just, not merely, never mind, whether or not, the mistake of, "
    "the error of, no doubt, no later than, if not, why not, nothing but, waste time, waste effort, "
    "waste words, waste space, no exceptions, no exception",
}
_EXTRA = (
    ("didn't", Symbol(Kind.NEGATE, form=Form.PAST)),
    ("did not", Symbol(Kind.NEGATE, form=Form.PAST)),
    ("did n't", Symbol(Kind.NEGATE, form=Form.PAST)),
    ("must", Symbol(Kind.MODAL, value=1)),
    ("ensure", Symbol(Kind.MODAL, value=1)),
    ("make sure", Symbol(Kind.MODAL, value=1)),
    ("be sure", Symbol(Kind.MODAL, value=1)),
    ("have to", Symbol(Kind.MODAL, value=1)),
    ("need to", Symbol(Kind.MODAL, value=1)),
    ("needs to", Symbol(Kind.MODAL, value=1)),
    ("under no circumstances", Symbol(Kind.NEGATE)),
    ("no circumstances", Symbol(Kind.NEGATE)),
    (",", Symbol(Kind.COMMA)),
)

Lexicon = Mapping[str, tuple[tuple[tuple[str, ...], Symbol], ...]]
"""First word of a phrase -> its (further words, symbol), longest first."""


def _phrases() -> Iterator[tuple[str, Symbol]]:
    for kind, cues in _CUES.items():
        yield from ((cue, Symbol(kind)) for cue in cues.split(", "))
    for verb in _NEGATING_VERBS:
        yield from ((word, Symbol(Kind.NEGATE, form=Form(form))) for form, word in enumerate(verb))
    for act, verbs in enumerate(ACTS):
        for verb_forms in verbs:
            yield from ((word, Symbol(Kind.ACT, act, Form(form))) for form, word in enumerate(verb_forms.forms))
    for thing, nouns in enumerate(THINGS):
        for pair in nouns:
            yield from ((noun, Symbol(Kind.THING, thing)) for noun in pair if noun not in NOT_A_NAME)
    yield from _EXTRA


def _build() -> Lexicon:
    # A later phrase takes the place of an earlier one of the same words.
    entries: dict[str, dict[tuple[str, ...], Symbol]] = {}
    for phrase, symbol in _phrases():
        first, *rest = phrase.split(" ")
        entries.setdefault(first, {})[tuple(rest)] = symbol
    return {first: tuple(sorted(tails.items(), key=lambda tail: -len(tail[0]))) for first, tails in entries.items()}


LEXICON: Lexicon = _build()
