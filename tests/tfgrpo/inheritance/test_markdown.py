from __future__ import annotations

from msgspec.structs import replace

from tests.tfgrpo.inheritance.test_own import VERSION
from tfgrpo import inheritance
from tfgrpo.inheritance.markdown import escape
from tfgrpo.types import Experience, Library


def test_a_lesson_is_shown_with_its_support_and_its_groups() -> None:
    assert "- **e2** Say x. (support 4, from 2 groups)" in inheritance.write(VERSION, "markdown")


def test_nothing_in_a_lesson_acts() -> None:
    nasty = "<script>alert(1)</script> [a](javascript:b) ![c](d) & # x\n# y `z` *k*"
    library = Library((Experience("e1", nasty),), 2)
    line = inheritance.write(replace(VERSION, library=library), "markdown").splitlines()[-1]
    assert escape(nasty) in line
    assert "<script>" not in line.replace("\\<", "")
    assert escape("a & b\n# c") == "a &amp; b \\# c"
