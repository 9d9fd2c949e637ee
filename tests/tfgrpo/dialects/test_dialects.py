from __future__ import annotations

from tfgrpo import dialects


def test_chat_completions_is_read_by_chat() -> None:
    found = dialects.dialect_of("/chat/completions")
    assert found is not None
    assert found.name == "chat"


def test_a_path_that_we_do_not_read_has_no_dialect() -> None:
    assert dialects.dialect_of("/embeddings") is None


def test_a_recorded_name_finds_its_dialect() -> None:
    assert dialects.by_name("chat") is dialects.dialect_of("/chat/completions")


def test_an_exchange_that_was_not_read_has_no_dialect() -> None:
    assert dialects.by_name(None) is None
    assert dialects.by_name("morse") is None
