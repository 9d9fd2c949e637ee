from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.simulation.loop import luck
from tfgrpo.simulation import language
from tfgrpo.simulation.families import THEMES, question
from tfgrpo.simulation.lexicon import LEXICON
from tfgrpo.simulation.parsing import parse
from tfgrpo.simulation.sentence import STRONG, WEAK
from tfgrpo.simulation.vocabulary import FEATURES


def said(text: str) -> list[str]:
    return [("+ " if one.polarity > 0 else "- ") + FEATURES[one.feature] for one in parse(text)]


def test_there_are_at_least_200_distinct_features() -> None:
    assert len(set(FEATURES)) == len(FEATURES) >= 200


@pytest.mark.parametrize("polarity", [1, -1])
def test_every_lesson_is_read_as_what_it_says(polarity: int) -> None:
    rng = luck(5)
    for feature in range(len(FEATURES)):
        for _ in range(40):
            text = language.lesson(feature, polarity, rng)
            assert [(one.feature, one.polarity) for one in parse(text)] == [(feature, polarity)], text


@pytest.mark.parametrize("done", [True, False])
def test_every_report_is_read_as_a_report_of_what_was_done(done: bool) -> None:
    rng = luck(1)
    for feature in range(len(FEATURES)):
        for text in (language.report(feature, rng, done=done), language.observation(feature, rng, done=done)):
            (mention,) = parse(text)
            assert (mention.feature, mention.polarity > 0, mention.reported) == (feature, done, True), text


def test_a_lesson_is_no_report() -> None:
    rng = luck(2)
    told = [language.lesson(0, polarity, rng) for polarity in (1, -1) for _ in range(200)]
    assert not [text for text in told if parse(text)[0].reported]


def test_a_lesson_stays_within_32_words() -> None:
    rng = luck(3)
    lengths = [len(language.lesson(one, 1, rng).split()) for one in range(len(FEATURES)) for _ in range(20)]
    assert max(lengths) <= 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please double-check the intermediate results.", ["+ check the intermediate results"]),
        ("Never, under any circumstances, restate the units.", ["- restate the units"]),
        ("Don't forget to restate the units.", ["+ restate the units"]),
        ("Don’t restate the units.", ["- restate the units"]),
        ("Do not waste time restating the units.", ["- restate the units"]),
        ("No matter what, restate the units.", ["+ restate the units"]),
        ("When not sure, restate the units.", ["+ restate the units"]),
        ("Don't rush: restate the units.", ["+ restate the units"]),
        ("Instead of restating the units, list the edge cases.", ["- restate the units", "+ list the edge cases"]),
        ("List the corner cases without repeating the units.", ["+ list the edge cases", "- restate the units"]),
        ("Do not restate the units and list the options.", ["- restate the units", "+ list the options"]),
        ("Do not restate the units or list the options.", ["- restate the units", "- list the options"]),
        ("Avoid restating the units and listing the options.", ["- restate the units", "- list the options"]),
        ("Neither restate the units nor list the options.", ["- restate the units", "- list the options"]),
        ("Check and restate the units.", ["+ check the units", "+ restate the units"]),
        ("Restate the units and the totals.", ["+ restate the units", "+ restate the totals"]),
        ("Restate the units, not the totals.", ["+ restate the units", "- restate the totals"]),
        ("The units should never be restated.", ["- restate the units"]),
        ("The units were restated and the options listed.", ["+ restate the units", "+ list the options"]),
        ("Restating the units hurts and listing the options helps.", ["- restate the units", "+ list the options"]),
        ("Not restating the units hurts.", ["+ restate the units"]),
        ("Failing to restate the units leads to wrong answers.", ["+ restate the units"]),
        ("If you restate the units, the answer is wrong.", ["- restate the units"]),
        ("Restate the units to avoid wrong answers.", ["+ restate the units"]),
        ("Avoid restating the units because it hurts.", ["- restate the units"]),
        ("Wrong answers did not restate the units.", ["+ restate the units"]),
        ("- Restate the units\n- never list the options", ["+ restate the units", "- list the options"]),
        ("Restate\nthe units, even across a line break.", ["+ restate the units"]),
        ("The list of options is long.", []),
        ("Answer in French, in one sentence.", []),
    ],
)
def test_prose_that_no_optimizer_wrote_is_understood(text: str, expected: Iterable[str]) -> None:
    assert said(text) == expected


def test_insisting_is_stronger_than_suggesting() -> None:
    (insisting,), (suggesting,) = parse("Always restate the units."), parse("Consider restating the units.")
    assert (insisting.strength, suggesting.strength) == (STRONG, WEAK)


def test_no_question_of_any_family_speaks_of_a_behaviour() -> None:
    rng = luck(4)
    assert not [
        text
        for theme in THEMES
        for number in range(200)
        if parse(text := question(theme, f"{theme.prefix}-{10_000 + number}", rng))
    ]


_PHRASES = sorted(" ".join((first, *tail)) for first, tails in LEXICON.items() for tail, _ in tails)


@given(st.one_of(st.text(), st.lists(st.sampled_from(_PHRASES), max_size=40).map(" ".join)))
def test_reading_never_fails_and_gives_known_features(text: str) -> None:
    for mention in parse(text):
        assert 0 <= mention.feature < len(FEATURES)
        assert mention.polarity in (1, -1)
        assert 0 < mention.strength <= 1
