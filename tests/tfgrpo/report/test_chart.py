from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.report.example import RESULT, run, step
from tfgrpo import report
from tfgrpo.report.chart import HEIGHT, WIDTH, Chart
from tfgrpo.report.record import Record

rewards = st.lists(st.none() | st.floats(0, 1), max_size=40)


def chart(*values: float | None, **more: object) -> Chart | None:
    steps = [step(number, value) for number, value in enumerate(values, 1)]
    return Chart.of(Record.of(run({"steps": steps, **more})))


def test_one_point_is_no_curve() -> None:
    assert chart(0.5, None) is None


def test_a_higher_reward_stands_higher() -> None:
    found = chart(0.2, 0.8)
    assert found is not None
    first, second = found.rollouts
    assert (first.x < second.x, first.y > second.y) == (True, True)


@given(rewards)
def test_every_point_lies_in_the_picture(values: list[float | None]) -> None:
    found = chart(*values)
    for dot in found.rollouts if found else ():
        assert 0 <= dot.x <= WIDTH
        assert 0 <= dot.y <= HEIGHT


def test_validation_stands_at_the_end_of_its_epoch() -> None:
    found = Chart.of(Record.of(run()))
    assert found is not None
    assert [dot.step for dot in found.validation] == [2, 4]
    assert len(found.borders) == 1


def test_the_page_draws_each_point_with_its_value() -> None:
    page = report.html(run())
    assert page.count("<circle") == len(RESULT["steps"]) + len(RESULT["epochs"])
    assert "step 3, rollouts: 0.650" in page
