"""The shape of the house: which way imports point, and how long things may get (DESIGN section 3, STYLE "Shape")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("proxy/**/*.py"), *ROOT.glob("tfgrpo/**/*.py")])
ALL = [*SOURCES, *sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])]

MOST_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_POSITIONAL = 5
MOST_NESTING = 3

OPEN_TO_PROXY = {
    "types",
    "errors",
    "library",
    "selection",
    "significance",
    "trajectories",
    "rewards",
    "dialects",
    "store",
    "experiment",
    "configuration",
    "secret_values",
    "withdrawal",
    "safety",
    "durations",
    "retention",
    "weighing",
    "report",
    "traffic",
}
"""The rooms of `tfgrpo` that `proxy` may enter. `configuration` holds the sections that both programs read."""

LAZY = {"tfgrpo/endpoint.py": {"litellm"}}
"""Imports inside functions, by file: litellm costs seconds and 200 MB, so it is loaded when first needed."""

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room(name: str) -> str:
    """The module or package right below the top that a dotted name lies in; names of a top level package lie in it."""
    return ".".join(name.split(".")[:2])


def _reached(start: str, doors: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    left = list(doors[start])
    while left:
        room = left.pop()
        if room not in reached:
            reached.add(room)
            left.extend(doors.get(room, ()))
    return reached


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTION):
            yield node


def _inner_imports(path: Path) -> Iterator[str]:
    for function in _functions(_tree(path)):
        yield from _imports(function)


def _is_ours(name: str) -> bool:
    return name.startswith("tfgrpo.")


def _is_long(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (function.end_lineno or 0) - function.lineno + 1 > MOST_FUNCTION_LINES


def _is_wide(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args.posonlyargs + function.args.args
    return len([one for one in arguments if one.arg not in ("self", "cls")]) > MOST_POSITIONAL


def _depth(node: ast.AST, so_far: int = 0) -> int:
    deepest = so_far
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTION):
            continue
        elif_of = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        step = isinstance(child, _NESTS) and not elif_of
        deepest = max(deepest, _depth(child, so_far + step))
    return deepest


def test_a_file_stays_below_the_wall() -> None:
    assert [_name(path) for path in ALL if len(path.read_text().splitlines()) > MOST_LINES] == []


def test_a_function_stays_below_the_wall() -> None:
    assert [f"{_name(path)}: {one.name}" for path in ALL for one in _functions(_tree(path)) if _is_long(one)] == []


def test_a_function_takes_few_arguments_by_position() -> None:
    # A test asks for as many fixtures as it needs.
    paths = [path for path in ALL if path.parts[-2] != "tests"]
    assert [f"{_name(path)}: {one.name}" for path in paths for one in _functions(_tree(path)) if _is_wide(one)] == []


def test_a_function_is_not_nested_deep() -> None:
    found = [
        f"{_name(path)}: {one.name}" for path in ALL for one in _functions(_tree(path)) if _depth(one) > MOST_NESTING
    ]
    assert found == []


def test_tfgrpo_never_imports_proxy() -> None:
    paths = [path for path in SOURCES if _name(path).startswith("tfgrpo/")]
    assert [f"{_name(path)}: {one}" for path in paths for one in _imports(_tree(path)) if one.startswith("proxy")] == []


def test_proxy_enters_only_the_open_rooms_of_tfgrpo() -> None:
    paths = [path for path in SOURCES if _name(path).startswith("proxy/")]
    entered = {(one.split(".")[1], _name(path)) for path in paths for one in _imports(_tree(path)) if _is_ours(one)}
    assert {(room, path) for room, path in entered if room not in OPEN_TO_PROXY} == set()


def test_imports_stand_at_the_top_but_for_litellm() -> None:
    inside = {(_name(path), one.split(".")[0]) for path in SOURCES for one in _inner_imports(path)}
    assert {(path, one) for path, one in inside if one not in LAZY.get(path, set())} == set()


def test_every_module_says_what_it_is_for() -> None:
    assert [_name(path) for path in SOURCES if not ast.get_docstring(_tree(path))] == []


def test_no_room_is_reached_from_itself() -> None:
    doors: dict[str, set[str]] = {}
    for path in SOURCES:
        room = _room(_name(path).removesuffix(".py").replace("/", "."))
        names = [name for name in _imports(_tree(path)) if name.split(".")[0] in ("proxy", "tfgrpo")]
        doors.setdefault(room, set()).update({_room(name) for name in names} - {room})
    assert [room for room in doors if room in _reached(room, doors)] == []


def test_the_simulated_provider_knows_nothing_of_the_learner() -> None:
    for path in ROOT.glob("tfgrpo/simulation/**/*.py"):
        rooms = {name.split(".")[1] for name in _imports(_tree(path)) if name.startswith("tfgrpo.")}
        assert rooms <= {"types", "errors", "simulation"}, path


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-openai-1.lock"])
def test_a_lock_holds_hashes_and_no_address_and_no_compromised_release(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text
    assert not [bad for bad in ("litellm==1.82.7", "litellm==1.82.8", "litellm==1.107.") if bad in text]
