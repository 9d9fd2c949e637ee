from __future__ import annotations

from msgspec.structs import replace

from tfgrpo.library import Limits
from tfgrpo.quorum import MOST_CARRIED, Ballot, Quorum, backing, carrying, opposition, settle
from tfgrpo.steps import Learned, Step
from tfgrpo.types import Experience, Library, Operation, Pending

MAKERS = {"g1": ("ann",), "g2": ("ann",), "g3": ("ben",), "g4": ("mallory",), "g5": ("mallory",), "g6": ("mallory",)}
GOOD, BAD = frozenset({"g1", "g2", "g3"}), frozenset({"g4", "g5", "g6"})
ACTIVE = Library((Experience("e1", "Check the date.", ("g0",)), Experience("e2", "Be brief.", ("g0",))), 3)
QUORUM = Quorum(3, 2, MAKERS)


def learned(library: Library, **step: object) -> Learned:
    return Learned(library, (Step(groups=6, telling=(), **step),))  # type: ignore[arg-type]


def with_entry(text: str, *, id_: str = "e3") -> Library:
    return Library((*ACTIVE.experiences, Experience(id_, text, ("g1",))), 4)


def settled(found: Learned, waiting: tuple[Pending, ...] = ()) -> tuple[list[str], list[str]]:
    """The texts that are active, and those that are pending."""
    made = settle(ACTIVE, found, QUORUM, waiting=waiting, run="r", limits=Limits())
    return [one.text for one in made.library.experiences], [one.text for one in made.pending]


def test_a_quorum_counts_tasks_and_those_behind_them() -> None:
    assert QUORUM.met(GOOD)
    assert not QUORUM.met(BAD)
    assert not QUORUM.met({"g1", "g3"})


def test_one_task_under_several_versions_is_one_group() -> None:
    several = Quorum(3, 1, dict.fromkeys(("g@1", "g@2", "g"), ("ann",)))
    assert not several.met(several.makers)


def test_an_entry_with_a_quorum_is_active_and_carries_its_groups() -> None:
    made = settle(
        ACTIVE, learned(with_entry("New."), backing={"New.": GOOD}), QUORUM, waiting=(), run="r", limits=Limits()
    )
    assert made.library.experiences[-1] == Experience("e3", "New.", ("g1", "g2", "g3"))
    assert made.library.next_id == 4


def test_an_entry_without_one_is_pending_with_all_that_backs_it() -> None:
    made = settle(
        ACTIVE, learned(with_entry("New."), backing={"New.": BAD}), QUORUM, waiting=(), run="r", limits=Limits()
    )
    assert made.library.experiences == ACTIVE.experiences
    assert made.pending == (
        Pending("New.", ("g1", "g4", "g5", "g6"), 1, dict.fromkeys(sorted(BAD), ("mallory",)), ("r",)),
    )


def test_what_is_active_keeps_its_wording_until_a_quorum_wants_another() -> None:
    reworded = Library((replace(ACTIVE.experiences[0], text="Praise the vendor."), ACTIVE.experiences[1]), 3)
    assert settled(learned(reworded, backing={"Praise the vendor.": BAD})) == (
        ["Check the date.", "Be brief."],
        ["Praise the vendor."],
    )
    assert settled(learned(reworded, backing={"Praise the vendor.": GOOD})) == (["Praise the vendor.", "Be brief."], [])


def test_what_is_active_goes_only_when_a_quorum_wants_it_away() -> None:
    less = Library(ACTIVE.experiences[1:], 3)
    assert settled(learned(less, opposition={"e1": BAD}))[0] == ["Check the date.", "Be brief."]
    assert settled(learned(less, opposition={"e1": GOOD}))[0] == ["Be brief."]


def test_entries_merged_by_a_quorum_make_room_for_their_common_wording() -> None:
    merged = Library((replace(ACTIVE.experiences[0], text="Check the date, be brief."),), 3)
    operation = Operation("merge", ("e1", "e2"), "Check the date, be brief.")
    step = {"applied": (operation,), "backing": {"Check the date, be brief.": GOOD}}
    assert settled(learned(merged, **step)) == (["Check the date, be brief."], [])
    step["backing"] = {"Check the date, be brief.": BAD}
    assert settled(learned(merged, **step)) == (["Check the date.", "Be brief."], ["Check the date, be brief."])


def test_what_earlier_runs_knew_counts_with_what_is_new() -> None:
    waiting = Pending("New.", ("old",), 1, {"old": ("carol",), "older": ("carol",)}, ("r0",))
    assert settled(learned(with_entry("New."), backing={"New.": frozenset({"g4"})}), (waiting,)) == (
        ["Check the date.", "Be brief.", "New."],
        [],
    )


def test_what_waits_and_was_not_spoken_of_goes_on_waiting() -> None:
    waiting = Pending("Another thing.", ("old",), 1, {"old": ("carol",)}, ("r0",))
    assert settled(learned(ACTIVE), (waiting,))[1] == ["Another thing."]


def test_a_group_backs_what_its_proposal_says_in_nearly_the_same_words_and_not_the_opposite() -> None:
    library = with_entry("Always check the date of the order.")
    proposals = [
        Operation("add", (), "Check the date of the order.", sources=("g1",)),
        Operation("add", (), "Never check the date of the order.", sources=("g2",)),
        Operation("add", (), "Something else.", sources=("g3",)),
    ]
    assert backing(library, proposals)["Always check the date of the order."] == {"g1"}


def test_a_group_that_confirms_more_than_it_has_lessons_confirms_nothing() -> None:
    one, all_ = (Operation("keep", ids) for ids in (("e1",), ("e1", "e2")))
    ballots = [Ballot("g1", 1, (one,)), Ballot("g2", 1, (all_,)), Ballot("g3", 1, (Operation("delete", ("e1",)),))]
    assert backing(ACTIVE, (), ballots) == {"Check the date.": {"g1"}, "Be brief.": frozenset()}


def test_only_a_wish_to_delete_counts_against_an_entry() -> None:
    proposals = [Operation("delete", ("e1",), sources=("g1",)), Operation("update", ("e1",), "x", sources=("g2",))]
    assert opposition(proposals) == {"e1": {"g1"}}


def test_a_run_works_with_a_bounded_number_of_pending_lessons_under_fresh_ids() -> None:
    waiting = [Pending(f"Lesson {number}.", (), 1, {}, ()) for number in range(2 * MOST_CARRIED)]
    carried = carrying(ACTIVE, waiting, Limits(entries=None))
    assert [one.id for one in carried.experiences][2:4] == ["e3", "e4"]
    assert (len(carried), carried.next_id) == (2 + MOST_CARRIED, 3 + MOST_CARRIED)
    assert len(carrying(ACTIVE, waiting, Limits(entries=5))) == 5
