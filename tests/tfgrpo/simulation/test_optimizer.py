from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.simulation.loop import Rewarded, contrast_prompt, luck
from tfgrpo.simulation import optimizer
from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.editing import key
from tfgrpo.simulation.frame import read_frame
from tfgrpo.simulation.language import lesson, report
from tfgrpo.simulation.parsing import parse
from tfgrpo.simulation.vocabulary import FEATURES
from tfgrpo.types import Message

WHOLE = Dials(broken_json=0.0)
"""Nothing breaks the JSON, so that a test can read it at once."""

UNITS = FEATURES.index("restate the units")
CASES = FEATURES.index("list the edge cases")


def ask(stage: str, user: str, seed: int = 0, dials: Dials = WHOLE) -> str:
    messages = [Message("system", f"Stage: {stage}\nDo it."), Message("user", user)]
    return optimizer.answer(messages, luck(seed), dials)


def ask_json(stage: str, user: str, seed: int = 0) -> dict[str, Any]:
    value = json.loads(ask(stage, user, seed))
    assert isinstance(value, dict)
    return value


def planted(rng: random.Random, feature: int, polarity: int) -> list[Rewarded]:
    """Four rollouts with ten random behaviours each; reward goes with one of them."""
    others = rng.sample([one for one in range(len(FEATURES)) if one != feature], 10)
    rollouts = []
    for reward in (1.0, 1.0, 0.0, 0.0):
        lines = [report(other, rng, done=rng.random() < 0.15) for other in others]
        lines.append(report(feature, rng, done=(polarity > 0) == (reward > 0)))
        rng.shuffle(lines)
        rollouts.append(("\n".join(lines), reward))
    return rollouts


def found(polarity: int) -> Counter[object]:
    rng = luck(polarity)
    lessons = (
        ask_json("contrast", contrast_prompt(planted(rng, UNITS, polarity)), seed)["lessons"] for seed in range(100)
    )
    return Counter(key(text) for texts in lessons for text in texts)


def proposals(*operations: dict[str, Any]) -> str:
    return "<operations>\n" + "\n".join(map(json.dumps, operations)) + "\n</operations>"


def add(text: str) -> dict[str, Any]:
    return {"why": "", "operation": "add", "ids": [], "text": text}


def test_a_planted_difference_is_found_most_of_the_time() -> None:
    assert found(1)[UNITS, 1] > 50


def test_a_behaviour_that_goes_with_failure_gives_a_lesson_against_it() -> None:
    assert found(-1)[UNITS, -1] > 50


def test_other_differences_are_reported_too() -> None:
    assert sum(count for said, count in found(1).items() if said != (UNITS, 1)) > 10


def test_equal_rewards_teach_next_to_nothing() -> None:
    rng = luck(1)
    silent = 0
    for seed in range(100):
        rollouts = [(text, 0.5) for text, _ in planted(rng, UNITS, 1)]
        silent += not ask_json("contrast", contrast_prompt(rollouts), seed)["lessons"]
    assert silent > 80


def test_a_contrast_depends_on_rewards_and_transcripts_alone() -> None:
    rollouts = planted(luck(3), UNITS, 1)
    turned = [(text, 1 - reward) for text, reward in rollouts]
    one, other = (ask_json("contrast", contrast_prompt(some))["lessons"] for some in (rollouts, turned))
    assert [key(text) for text in one] != [key(text) for text in other]


def test_a_summary_tells_what_the_transcript_shows_most_of_the_time() -> None:
    rng = luck(4)
    right = told = 0
    for seed in range(60):
        done = {feature: rng.random() < 0.5 for feature in rng.sample(range(len(FEATURES)), 10)}
        lines = "\n".join(report(feature, rng, done=shown) for feature, shown in done.items())
        seen = parse(ask("summarise", f'<rollout reward="1.0">\n{lines}\n</rollout>', seed))
        told += len(seen)
        right += sum(done[one.feature] == (one.polarity > 0) for one in seen)
    assert 500 < told < 600
    assert 0.9 < right / told < 1


def test_a_summary_is_no_report_of_the_lessons_given() -> None:
    given = "<library>\n[e1] Always restate the units.\n</library>"
    asked = f'{given}\n<rollout reward="1">\nAlways restate the units.\n</rollout>'
    assert not parse(ask("summarise", asked))


def test_a_new_lesson_is_proposed_as_an_entry() -> None:
    (operation,) = ask_json("propose", "<library>\n\n</library>\n<lessons>\n- Restate the units.\n</lessons>")[
        "operations"
    ]
    assert (operation["operation"], operation["ids"], operation["text"]) == ("add", [], "Restate the units.")


def test_a_lesson_without_a_known_behaviour_is_proposed_too() -> None:
    (operation,) = ask_json("propose", "<lessons>\n- Answer in French.\n</lessons>")["operations"]
    assert operation["text"] == "Answer in French."


def test_a_known_lesson_is_confirmed_or_reworded_and_not_added_again() -> None:
    asked = "<library>\n[e4] Always restate the units.\n</library>\n<lessons>\n- Repeat the units.\n</lessons>"
    operations = [ask_json("propose", asked, seed)["operations"][0] for seed in range(40)]
    assert {one["operation"] for one in operations} == {"keep", "update"}
    assert {tuple(one["ids"]) for one in operations} == {("e4",)}


def test_a_contradicted_entry_is_proposed_for_deletion() -> None:
    asked = "<library>\n[e4] Always restate the units.\n</library>\n<lessons>\n- Never repeat the units.\n</lessons>"
    operations = ask_json("propose", asked)["operations"]
    assert {"delete"} < {one["operation"] for one in operations}


def test_two_entries_that_say_the_same_are_merged() -> None:
    asked = "<library>\n[e4] Restate the units.\n[e7] Repeat the units.\n</library>\n<lessons>\n\n</lessons>"
    (operation,) = ask_json("propose", asked)["operations"]
    assert (operation["operation"], operation["ids"], key(operation["text"])) == ("merge", ["e4", "e7"], (UNITS, 1))


def test_a_rejected_edit_is_not_proposed_again() -> None:
    asked = (
        "<lessons>\n- Repeat the units.\n</lessons>\n<rejected>\n- add: Restate the units. (refused: harm)\n</rejected>"
    )
    assert ask_json("propose", asked)["operations"] == []


def test_consolidation_keeps_what_several_say_and_drops_what_one_says() -> None:
    rng = luck(5)
    several = [add(lesson(UNITS, 1, rng)) for _ in range(5)]
    alone = [add(lesson(feature, 1, rng)) for feature in range(100, 110)]
    operations = ask_json("consolidate", proposals(*several, *alone), seed=3)["operations"]
    assert [key(one["text"]) for one in operations] == [(UNITS, 1)]


def test_consolidation_drops_a_minority_that_contradicts() -> None:
    rng = luck(6)
    votes = [add(lesson(UNITS, 1, rng)) for _ in range(6)] + [add(lesson(UNITS, -1, rng)) for _ in range(2)]
    operations = ask_json("consolidate", proposals(*votes))["operations"]
    assert [key(one["text"]) for one in operations] == [(UNITS, 1)]


def test_consolidation_deletes_what_several_speak_against() -> None:
    library = "<library>\n[e1] Restate the units.\n[e2] List the edge cases.\n</library>\n"
    votes = [{"why": "", "operation": "delete", "ids": ["e1"], "text": None}] * 4
    operations = ask_json("consolidate", library + proposals(*votes))["operations"]
    assert [(one["operation"], one["ids"]) for one in operations] == [("delete", ["e1"])]


def test_consolidation_never_edits_an_entry_twice() -> None:
    rng = luck(7)
    library = "<library>\n[e1] Restate the units.\n</library>\n"
    votes = [add(lesson(UNITS, -1, rng)) for _ in range(6)]
    votes += [{"why": "", "operation": "delete", "ids": ["e1"], "text": None}] * 6
    operations = ask_json("consolidate", library + proposals(*votes))["operations"]
    ids = [id_ for one in operations for id_ in one["ids"]]
    assert ids == ["e1"]


def test_a_single_proposal_is_enough_when_there_are_few() -> None:
    assert len(ask_json("consolidate", proposals(add("List the edge cases.")))["operations"]) == 1


def test_answers_are_broken_json_now_and_then() -> None:
    prompt = contrast_prompt(planted(luck(8), CASES, 1))
    broken = 0
    for seed in range(400):
        try:
            json.loads(ask("contrast", prompt, seed, Dials()))
        except ValueError:
            broken += 1
    assert 4 <= broken <= 45


def test_an_escaped_tag_inside_a_transcript_opens_no_section() -> None:
    asked = contrast_prompt(
        [('I restated the units.\n&lt;rollout number="9" reward="1.0">\nI listed the edge cases.', 1.0), ("None.", 0.0)]
    )
    assert len(read_frame([Message("user", asked)]).all("rollout")) == 2


def test_unknown_sections_and_a_missing_stage_are_no_error() -> None:
    assert "stage" in optimizer.answer([Message("user", "<other>\nx\n</other>")], luck(0), WHOLE)


_PIECES = st.sampled_from(
    [
        '<rollout reward="nan">\n',
        '<rollout reward="1">\n',
        "</rollout>\n",
        "<library>\n",
        "</library>\n",
        "[e1] restate the units\n",
        "<operations>\n",
        "</operations>\n",
        '{"operation": "add", "text": 3}\n',
        '{"operation": "merge", "ids": ["e1", 4], "text": "x"}\n',
        '{"operation": ["x"], "ids": {}}\n',
        "[[[[\n",
        "<lessons>\n",
        "- I did not list the edge cases.\n",
        "</lessons>\n",
        "I restated the units.\n",
    ]
)


@given(
    st.sampled_from(["summarise", "contrast", "propose", "consolidate", "x"]),
    st.one_of(st.text(), st.lists(_PIECES).map("".join)),
)
def test_no_prompt_makes_the_optimizer_fail(stage: str, user: str) -> None:
    assert isinstance(ask(stage, user), str)


def test_every_second_lesson_of_a_contrary_optimizer_is_the_opposite() -> None:
    prompt = contrast_prompt(planted(luck(8), UNITS, 1))
    frame = read_frame((Message("system", "Stage: contrast"), Message("user", prompt)))
    said = [optimizer.contrast(frame, luck(seed), Dials(contrary=0.5, spurious=0.0, second=0.0)) for seed in range(200)]
    against = sum(parse(one["lessons"][0])[0].polarity < 0 for one in said)  # type: ignore[index]
    assert 70 < against < 130


def test_with_no_rollout_to_study_one_lesson_is_guessed_out_of_all() -> None:
    frame = read_frame((Message("system", "Stage: contrast"), Message("user", "<task>\nx\n</task>")))
    said = [parse(optimizer.contrast(frame, luck(seed), Dials())["lessons"][0]) for seed in range(100)]  # type: ignore[index]
    assert {len(one) for one in said} == {1}
    assert len({one[0].feature for one in said}) > 60
