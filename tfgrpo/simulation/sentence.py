"""One sentence, read from left to right: which act goes with which thing, and what turns its meaning.

It is handed phrases in order (`Sentence.take`) and gives the mentions at the end (`Sentence.finish`). It knows neither
text nor words, only what a phrase does (`lexicon.Kind`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tfgrpo.simulation.lexicon import Kind, Symbol
from tfgrpo.simulation.vocabulary import Form, feature

REACH = 7
"""So many words may stand between an act and its thing."""

PLAIN, STRONG, WEAK = 0.9, 1.0, 0.5
"""How strongly a sentence speaks: as it is, with a word such as "always", with one such as "consider"."""


class Mention(NamedTuple):
    """One thing a text says: a feature, for it (+1) or against it (-1), how strongly (0 to 1).

    `reported` is true when the text tells what was done, and false when it asks for something.
    """

    feature: int
    polarity: int
    strength: float
    reported: bool


@dataclass(slots=True)
class _Act:
    act: int
    form: Form
    at: int
    against: bool
    judged: bool
    """Whether what follows may be a verdict on it: "restating the units hurts"."""
    things: int = 0


@dataclass(slots=True)
class _Pair:
    feature: int
    against: bool
    judged: bool
    conditional: bool
    past: bool


class Sentence:
    """The state of one sentence while it is read from left to right."""

    __slots__ = (
        "_acts",
        "_conditional",
        "_held",
        "_joint",
        "_modal",
        "_pairs",
        "_passive",
        "_report",
        "_scope",
        "_stale",
        "_strength",
        "_turned_at",
        "_turns",
        "_waiting",
        "touched",
    )

    def __init__(self) -> None:
        self.touched = False
        self._pairs: list[_Pair] = []
        self._acts: list[_Act] = []
        self._waiting: list[tuple[int, int]] = []
        self._turns = 0
        self._turned_at = -1
        self._stale = False
        self._held = False
        self._scope = False
        self._joint: Kind | None = None
        self._conditional = False
        self._passive = False
        self._strength = PLAIN
        self._report = False
        self._modal = False

    def take(self, symbol: Symbol, at: int, length: int) -> None:
        """Read one phrase of `length` words that starts at word `at`."""
        self.touched = True
        _HANDLERS[symbol.kind](self, symbol, at + length - 1)

    def finish(self) -> list[Mention]:
        """What the sentence said; it is over."""
        if not self.touched:
            return []
        self._settle()
        self._judge(closing=True)
        return [
            Mention(
                pair.feature,
                -1 if pair.against else 1,
                self._strength,
                not self._modal and (pair.past or self._report),
            )
            for pair in self._pairs
        ]

    def act(self, symbol: Symbol, at: int) -> None:
        """A verb: it is for or against by the negating words since the last pair, or goes on as the verb before."""
        gerund = symbol.form is Form.GERUND
        against = self._turns % 2 == 1 and (gerund or not self._stale)
        if not self._turns and self._continues(gerund=gerund):
            against = self._scope
        if any(act.things for act in self._acts) or self._joint is None:
            self._settle()
            self._acts = []
        self._acts.append(_Act(symbol.value, symbol.form, at, against, gerund or self._conditional))
        self._scope = against
        self._turns, self._stale, self._joint = 0, False, None

    def _continues(self, *, gerund: bool) -> bool:
        if self._joint is Kind.OR:
            return True
        unfinished = bool(self._acts) and not any(act.things for act in self._acts)
        return self._joint is not None and (gerund or unfinished)

    def thing(self, symbol: Symbol, at: int) -> None:
        """A noun: it belongs to the verbs before it, or waits for one that follows ("the units were restated")."""
        bound = self._joint is not None or self._turns > 0
        near = [act for act in self._acts if at - act.at <= REACH and (bound or not act.things)]
        if not near or self._passive:
            self._waiting.append((symbol.value, at))
            return
        turned = self._turns % 2 == 1
        for act in near:
            self._pair(act, symbol.value, against=act.against != turned)
            act.at = at
            act.things += 1
        self._turns, self._stale, self._joint = 0, False, None
        self._waiting = []

    def negate(self, symbol: Symbol, at: int) -> None:
        """A word that turns the meaning; two of them leave it as it was."""
        self._turns += 1
        self._turned_at = at
        self._stale = False
        self._conditional |= symbol.form is Form.GERUND
        self._report |= symbol.form is Form.PAST

    def comma(self, symbol: Symbol, at: int) -> None:
        """A pause: a negation directly before it still holds after it ("do not, ever, restate")."""
        if self._held or (self._turned_at == at - 1 and self._turns > 0):
            self._held = not self._held
        else:
            self.join(symbol, at)
            self._stale = self._turns > 0
        self._joint = self._joint or Kind.COMMA

    def join(self, symbol: Symbol, _at: int) -> None:
        """A conjunction between verbs, nouns or clauses."""
        if self._waiting and self._acts and not self._acts[-1].things:
            self._settle()
            self._passive = True
            self._acts = []
        self._judge(closing=symbol.kind is not Kind.COMMA)
        self._joint = symbol.kind

    def clause(self, symbol: Symbol, _at: int) -> None:
        """A subordinate clause: the verbs before it have what they need."""
        self._settle()
        if any(act.things for act in self._acts):
            self._judge(closing=True)
            self._acts = []
        self._stale = self._turns > 0 and symbol.kind is Kind.CLAUSE
        self._conditional |= symbol.kind is Kind.CONDITION

    def reset(self, _symbol: Symbol, _at: int) -> None:
        """A fresh start: "instead, list the options"."""
        if self._pairs:
            self._judge(closing=True)
            self._turns = 0
        self._joint = None

    def strong(self, _symbol: Symbol, _at: int) -> None:
        """The sentence insists."""
        self._strength = STRONG

    def weak(self, _symbol: Symbol, _at: int) -> None:
        """The sentence only suggests."""
        self._strength = WEAK

    def report(self, _symbol: Symbol, _at: int) -> None:
        """The sentence tells what was done."""
        self._report = True

    def modal(self, symbol: Symbol, _at: int) -> None:
        """The sentence says what should be."""
        self._modal = True
        self._strength = STRONG if symbol.value else self._strength

    def nothing(self, _symbol: Symbol, _at: int) -> None:
        """A phrase that says nothing about behaviours."""

    def _settle(self) -> None:
        """Verbs that found no noun after them take the ones that waited before them."""
        empty = [act for act in self._acts if not act.things]
        if not empty or not self._waiting:
            return
        for act in empty:
            for thing, at in self._waiting:
                if act.at - at <= REACH:
                    self._pair(act, thing, against=act.against)
                    act.things += 1
        self._waiting = []

    def _pair(self, act: _Act, thing: int, *, against: bool) -> None:
        self._pairs.append(
            _Pair(feature(act.act, thing), against, act.judged, self._conditional, act.form is Form.PAST)
        )

    def _judge(self, *, closing: bool) -> None:
        """A negating word after a behaviour that is spoken of, not asked for, is a verdict on it."""
        turned = self._turns % 2 == 1
        for pair in self._pairs:
            if pair.judged and turned:
                pair.against = not pair.against
                pair.judged = False
            pair.judged = pair.judged and pair.conditional and not closing
        if turned and self._pairs:
            self._turns = 0


_HANDLERS: tuple[Callable[[Sentence, Symbol, int], None], ...] = (
    Sentence.nothing,
    Sentence.act,
    Sentence.thing,
    Sentence.negate,
    Sentence.comma,
    Sentence.join,
    Sentence.join,
    Sentence.clause,
    Sentence.clause,
    Sentence.reset,
    Sentence.strong,
    Sentence.weak,
    Sentence.report,
    Sentence.modal,
    Sentence.nothing,
)
