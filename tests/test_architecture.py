"""The shape of the house: which way imports point, and how long things may get (DESIGN section 3, STYLE "Shape")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


def _depth(node: ast.AST, so_far: int = 0) -> int:
    deepest = so_far
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTION):
            continue
        elif_of = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        step = isinstance(child, _NESTS) and not elif_of
        deepest = max(deepest, _depth(child, so_far + step))
    return deepest


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_a_file_stays_below_the_wall(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_a_function_stays_below_the_wall(path: Path) -> None:
    for function in _functions(ast.parse(path.read_text())):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= MOST_FUNCTION_LINES, function.name
        positional = [a for a in function.args.posonlyargs + function.args.args if a.arg not in ("self", "cls")]
        assert len(positional) <= MOST_POSITIONAL or path.parts[-2] == "tests", function.name
        assert _depth(function) <= MOST_NESTING, function.name


@pytest.mark.parametrize("path", [p for p in SOURCES if _name(p).startswith("tfgrpo/")], ids=_name)
def test_tfgrpo_never_imports_proxy(path: Path) -> None:
    assert not [name for name in _imports(ast.parse(path.read_text())) if name.split(".")[0] == "proxy"]


@pytest.mark.parametrize("path", [p for p in SOURCES if _name(p).startswith("proxy/")], ids=_name)
def test_proxy_enters_only_the_open_rooms_of_tfgrpo(path: Path) -> None:
    rooms = {name.split(".")[1] for name in _imports(ast.parse(path.read_text())) if name.startswith("tfgrpo.")}
    assert rooms <= OPEN_TO_PROXY


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_imports_stand_at_the_top_but_for_litellm(path: Path) -> None:
    inside = {name.split(".")[0] for function in _functions(ast.parse(path.read_text())) for name in _imports(function)}
    assert inside <= LAZY.get(_name(path), set())


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_room_is_reached_from_itself() -> None:
    doors: dict[str, set[str]] = {}
    for path in SOURCES:
        room = _room(_name(path).removesuffix(".py").replace("/", "."))
        names = [name for name in _imports(ast.parse(path.read_text())) if name.split(".")[0] in ("proxy", "tfgrpo")]
        doors.setdefault(room, set()).update({_room(name) for name in names} - {room})
    assert [room for room in doors if room in _reached(room, doors)] == []


def test_the_simulated_provider_knows_nothing_of_the_learner() -> None:
    for path in ROOT.glob("tfgrpo/simulation/**/*.py"):
        rooms = {name.split(".")[1] for name in _imports(ast.parse(path.read_text())) if name.startswith("tfgrpo.")}
        assert rooms <= {"types", "errors", "simulation"}, path


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-openai-1.lock"])
def test_a_lock_holds_hashes_and_no_address_and_no_compromised_release(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text
    assert not [bad for bad in ("litellm==1.82.7", "litellm==1.82.8", "litellm==1.107.") if bad in text]
