"""What `--check-config` says of configurations that people get wrong: what, where, and what to do; never a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.__main__ import main

FILES = [
    ("server: {prot: 8000}", "server.prot in c.yaml is not a known setting; did you mean server.port?"),
    ("sever: {}", "sever in c.yaml is not a known setting; did you mean server?"),
    (
        "apps: [{name: a, keys: [k], set: [m]}]",
        "apps[0].set in c.yaml is not a known setting; did you mean apps[0].sets?",
    ),
    ("zzz: 1", "zzz in c.yaml is not a known setting; correct or remove it"),
    ("server: {port: eighty}", "server.port in c.yaml: must be a whole number"),
    ("server: {port: 99999}", "server.port in c.yaml: must be at most 65535"),
    ("server: 8000", "server in c.yaml: must hold keys and their values, not one value"),
    ("recorder: {record: all}", "recorder.record in c.yaml: must be 'off', 'metadata' or 'full'"),
    ("upstreams: [{base_url: 'http://h/v1'}]", "upstreams[0].name in c.yaml: is missing; add it"),
    ("upstreams: [{name: a, base_url: 'localhost:9000/v1'}]", "upstreams[0].base_url in c.yaml: is no http://"),
    ("upstreams: {name: a}", "upstreams in c.yaml: must be a list"),
    ("apps: [{name: a, keys: []}]", "apps[0].keys in c.yaml: must name at least 1"),
    ("routes: [{set: Math Set}]", "routes: 'Math Set' is no name of a set"),
    ("experiment: {label_window: soon}", "experiment.label_window in c.yaml: 'soon' is no duration: 90s"),
    ("store: {url: 'mysql://u:hush@h/x'}", "store.url names 'mysql'; stored is in sqlite:///PATH"),
    ("server: {ca_file: /no/such.pem}", "server.ca_file in c.yaml: names no file that is there"),
    ("server: {port: x, wrkers: 2}", "server.port in c.yaml: must be a whole number; server.wrkers in c.yaml is not"),
    ("server: {port: 8000\nstore: {}", "c.yaml is not YAML: line 2, column 6: expected ',' or '}'"),
    ("server:\n\tport: 1", "c.yaml is not YAML: line 2, column 1: found character '\\t'"),
    ("- a", "c.yaml must hold sections such as 'store:'"),
    ("a: &a [*a]", "c.yaml is nested too deeply, or an alias"),
]


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Check a configuration that is not fine and return the one line that says so."""
    assert main([*arguments, "--check-config"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize(("text", "said"), FILES)
def test_what_is_wrong_in_a_file_is_said_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(text)
    told = checked(capsys, "--config", str(config))
    assert said in told
    assert "hush" not in told


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TFGRPO_SERVER__PORT", "hush", "server.port (from TFGRPO_SERVER__PORT): must be a whole number"),
        ("TFGRPO_SERVER", '{"port": "hush"}', "server.port (from TFGRPO_SERVER): must be a whole number"),
        ("TFGRPO_UPSTREAMS", "[{hush", "TFGRPO_UPSTREAMS is no JSON"),
        ("TFGRPO_TRAINING__POLICY", "{hush", "TFGRPO_TRAINING__POLICY is no JSON"),
        ("TFGRPO_SERVR__PORT", "hush", "TFGRPO_SERVR__PORT names the section 'servr', which is not known; unset it"),
    ],
)
def test_what_is_wrong_in_a_variable_is_said_with_its_name_and_not_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    told = checked(capsys)
    assert said in told
    assert "hush" not in told


def test_more_complaints_than_one_line_bears_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("server: {a1: 1, b2: 1, c3: 1, d4: 1, e5: 1}")
    assert checked(capsys, "--config", str(config)).endswith("and 2 more\n")


def test_a_file_that_is_not_there_or_is_no_text_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")
    assert "byte 0 is no UTF-8" in checked(capsys, "--config", str(tmp_path / "c.yaml"))
    assert "Is a directory; name another with --config" in checked(capsys, "--config", str(tmp_path))
    assert "No such file" in checked(capsys, "--config", str(tmp_path / "none.yaml"))
