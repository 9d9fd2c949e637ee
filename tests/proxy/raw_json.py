"""Raw JSON as clients may send it, for Hypothesis: odd numbers, doublets, lone surrogates, deep nesting, any space."""

from __future__ import annotations

import json

from hypothesis import strategies as st

Bytes = st.SearchStrategy[bytes]

space = st.text(" \t\r\n", max_size=2).map(str.encode)
odd_text = st.sampled_from(
    ['"\\ud83d"', '"\\u00e9\\n"', '"é😀"', '"messages"', '"\\"role\\":[{"', '"a\\\\"', '""', '"x\\r"']
).map(str.encode)
scalar = st.sampled_from(["1e400", "0.10", "-0", "9" * 400, "true", "null"]).map(str.encode) | odd_text


@st.composite
def object_of(draw: st.DrawFn, values: Bytes, names: st.SearchStrategy[str]) -> bytes:
    fields = [draw(space) + json.dumps(draw(names)).encode() + draw(space) + b":" + draw(values) for _ in range(2)]
    return b"{" + b",".join(fields) + draw(space) + b"}"


def array_of(values: Bytes, least: int = 0) -> Bytes:
    listed = st.lists(values, min_size=least, max_size=3)
    return st.tuples(listed, space).map(lambda drawn: b"[" + drawn[1] + (drawn[1] + b",").join(drawn[0]) + b"]")


_deep = st.integers(0, 200).map(lambda depth: b"[" * depth + b'{"role":"system"}' + b"]" * depth)
value = st.recursive(
    scalar | _deep, lambda inner: array_of(inner) | object_of(inner, st.sampled_from(["a", "role", "messages", "a"]))
)
text_part = odd_text.map(lambda text: b'{"type":"text","text":' + text + b"}")


@st.composite
def body_of(draw: st.DrawFn, /, **members: tuple[Bytes, int]) -> bytes:
    """A body with these members among others. Each has its values and how often it comes at least; twice at most."""
    fields = [
        json.dumps(name).encode() + draw(space) + b":" + draw(values)
        for name, (values, least) in members.items()
        for _ in range(draw(st.integers(least, 2)))
    ]
    fields += [json.dumps(draw(st.text(max_size=3))).encode() + b":" + draw(value) for _ in range(2)]
    return draw(space) + b"{" + b",".join(draw(st.permutations(fields))) + draw(space) + b"}"
