from __future__ import annotations

from pathlib import Path

import pytest

from tfgrpo.configuration import Configuration, load
from tfgrpo.errors import UsageError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, environ={}) == Configuration()


def test_sections_of_the_proxy_are_not_judged(tmp_path: Path) -> None:
    config = written(tmp_path, "server: {nonsense: 1}\nstore: {url: 'sqlite:///x.db'}\n")
    assert load(config, environ={}).store.url == "sqlite:///x.db"


def test_an_unknown_key_is_refused_with_its_path(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {modle: x}}")
    with pytest.raises(UsageError, match=r"training\.policy\.modle"):
        load(config, environ={})


def test_a_variable_takes_the_place_of_a_key(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {model: a}, group_size: 4}")
    loaded = load(config, environ={"TFGRPO_TRAINING__POLICY__MODEL": "b"})
    assert (loaded.training.policy.model, loaded.training.group_size) == ("b", 4)


def test_a_variable_may_hold_json() -> None:
    loaded = load(
        None, environ={"TFGRPO_TRAINING__OPTIMIZER": '{"model": "m", "price": {"prompt": 1, "completion": 2}}'}
    )
    assert loaded.training.optimizer.price is not None


def test_a_reference_to_the_environment_is_resolved(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {api_key: os.environ/KEY}}")
    key = load(config, environ={"KEY": "secret"}).training.policy.api_key
    assert key is not None
    assert key.get_secret_value() == "secret"


def test_a_reference_to_an_unset_variable_names_it_and_the_key(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {api_key: os.environ/KEY}}")
    with pytest.raises(UsageError, match=r"training\.policy\.api_key.*KEY"):
        load(config, environ={})


def test_a_section_that_is_not_asked_for_needs_no_variable(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {api_key: os.environ/KEY}}")
    assert load(config, environ={}, sections=("store",)) == Configuration()


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    config = written(tmp_path, "training: {policy: {api_key: hush, base_url: 'ftp://x'}}")
    with pytest.raises(UsageError) as caught:
        load(config, environ={})
    assert "hush" not in str(caught.value)


def test_a_file_that_is_not_yaml_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, "a: [1,\nb: {"), environ={})
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "absent.yaml", environ={})


def test_the_memo_lies_beside_the_store() -> None:
    loaded = load(None, environ={"TFGRPO_STORE__URL": "sqlite:////srv/x/tfgrpo.db"})
    assert loaded.memo == Path("/srv/x/memo")


def test_a_variable_that_names_no_section_is_left_to_the_other_program() -> None:
    assert load(None, environ={"TFGRPO_SERVER__PORT": "1"}) == Configuration()


def test_broken_json_in_a_variable_is_refused_naming_it_and_not_its_value() -> None:
    with pytest.raises(UsageError, match="TFGRPO_TRAINING ") as caught:
        load(None, environ={"TFGRPO_TRAINING": "{canary"})
    assert "canary" not in str(caught.value)


def test_a_grader_may_be_a_name_or_a_name_with_arguments(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    found = []
    for text in ("exact", '{name: judge, rubric: "Be kind."}', '{name: json_schema, schema: {type: "null"}}'):
        file.write_text(f"training: {{grader: {text}}}")
        found.append(load(file, environ={}).training.grader)
    assert [(one.name, one.rubric, one.json_schema) for one in found if one is not None] == [
        ("exact", None, None),
        ("judge", "Be kind.", None),
        ("json_schema", None, {"type": "null"}),
    ]


def test_a_metric_may_be_its_weight_or_say_its_range(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("training: {metrics: {resolved: 2, latency: {weight: 0.5, worst: 30, best: 2}}}")
    metrics = load(file, environ={}, sections=("store", "metrics")).training.metrics
    assert [(one.weight, one.worst, one.best) for one in metrics.values()] == [(2.0, 0.0, 1.0), (0.5, 30.0, 2.0)]


@pytest.mark.parametrize("metrics", ["{}", "{reward: 0}", "{reward: {worst: 1, best: 1}}", "{reward: .nan}"])
def test_metrics_that_come_to_no_reward_are_refused(tmp_path: Path, metrics: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"training: {{metrics: {metrics}}}")
    with pytest.raises(UsageError, match="metrics"):
        load(file, environ={})


def test_metrics_are_read_without_the_keys_of_models(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("training: {policy: {api_key: os.environ/ABSENT}, metrics: {resolved: 1}}")
    assert list(load(file, environ={}, sections=("store", "metrics")).training.metrics) == ["resolved"]
