"""What `tfgrpo` takes on its command line. Nothing but the standard library is imported here: help must be quick."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

_NAME: Final = re.compile(r"(?!none$)[a-z0-9][a-z0-9._-]{0,63}")


EXAMPLES: Final = {
    "": """\
  tfgrpo simulate --port 9000                      a provider that costs nothing, to try everything
  tfgrpo groups --set math                         is there anything to learn from yet?
  tfgrpo train --set math --from traffic           learn a version from labelled traffic
  tfgrpo evaluate --set math --data held.jsonl --grader exact
  tfgrpo sets deploy math@1 --control 0.1          give it to live requests, a tenth of them without
  tfgrpo sets rollback math                        and take it back

exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a budget ran out, 130 interrupted
""",
    "train": """\
  tfgrpo train --set math --from traffic --max-usd 5
  tfgrpo train --set math --from replay --grader judge
  tfgrpo train --set math --from dataset --data tasks.jsonl --grader exact --deploy
""",
    "estimate": """\
  tfgrpo estimate --set math --from dataset --data tasks.jsonl --grader exact
""",
    "evaluate": """\
  tfgrpo evaluate --set math@2 --against math@1 --data held.jsonl --grader exact --k 8
  tfgrpo evaluate --set math --data held.jsonl --plan --effect 0.05
  tfgrpo evaluate --set math --data held.jsonl --ablate --prune
""",
    "groups": """\
  tfgrpo groups
  tfgrpo groups --set math --json
""",
    "sets": """\
  tfgrpo sets list
  tfgrpo sets diff math@1 math@2
  tfgrpo sets export math@2 --format markdown --output math.md
  tfgrpo sets deploy math@2 --candidate 3 --share 0.1 --control 0.1
""",
    "traffic": """\
  tfgrpo traffic import spend_logs.jsonl --format litellm --set math
  tfgrpo traffic export --set math --min-reward 0.8 --output examples.jsonl
  tfgrpo traffic export --set math --format tfgrpo --output math.jsonl
""",
    "runs": """\
  tfgrpo runs
  tfgrpo runs report RUN --output report.html
""",
    "simulate": """\
  tfgrpo simulate --port 9000 --seed 1
""",
}
"""What `--help` shows behind the arguments, by command; "" is the program itself. A test reads each line."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looks the version up when it is asked for: that takes longer than all else here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print it and exit."""
        metadata = importlib.import_module("importlib.metadata")
        sys.stdout.write(f"{parser.prog} {metadata.version('tfgrpo-proxy')}\n")
        parser.exit()


def parser() -> Parser:
    """Return the parser of the whole command line. `command` names the module that runs it."""
    top = Parser(prog="tfgrpo", description="Train, evaluate and manage experience sets.", **_epilog(""))
    top.add_argument("--version", action=_Version, nargs=0, help="show the program's version and leave")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _train(_command(commands, "train", "learn a new version of a set from labelled traffic or a data set"))
    _train(_command(commands, "estimate", "say what train with the same arguments would cost; call no model"))
    _evaluate(_command(commands, "evaluate", "compare two versions of a set on held-out tasks"))
    groups = _command(commands, "groups", "say how many groups contrast, why the others do not and what to do")
    groups.add_argument("--set", type=_set_name, metavar="S", help="traffic of this set only")
    _sets(_command(commands, "sets", "list, show, compare, import, export, deploy and roll back sets"))
    _traffic(_command(commands, "traffic", "write traffic, as training data or as it is, and take it from elsewhere"))
    _runs(_command(commands, "runs", "list training runs, show one, or write its report"))
    _backup(_command(commands, "backup", "copy SQLite's store while the proxy serves"))
    _purge(_command(commands, "purge", "erase the recorded traffic of an app, an end user or a time"))
    _withdraw(_command(commands, "withdraw", "take back what was learned from an exchange, an app or a source"))
    _retention(_command(commands, "retention", "say what is older than the configured ages, or delete it"))
    said = "serve a simulated provider, to try everything with no key"
    simulate = commands.add_parser("simulate", help=said, description=f"S{said[1:]}.", **_epilog("simulate"))
    simulate.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    simulate.add_argument("--port", type=int, default=9000, help="port to listen on (9000)")
    simulate.add_argument("--seed", type=int, default=0, help="which world is simulated (0)")
    return top


def versioned(text: str) -> tuple[str, int | None]:
    """Return the set and version of `S` or `S@V`."""
    name, at, number = text.partition("@")
    if at and not (number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}: a version is a number, as in {name}@3")
    return _set_name(name), int(number) if at else None


def _set_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no set name: a-z, 0-9, '.', '_', '-', at most 64")
    return text


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    said = f"{text[0].upper()}{text[1:]}."
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=said, **_epilog(name))
    _common(made)
    return made


def _epilog(name: str) -> dict[str, Any]:
    return {
        "epilog": f"examples:\n{EXAMPLES[name]}" if name in EXAMPLES else None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _common(made: argparse.ArgumentParser) -> None:
    made.add_argument("--config", type=Path, metavar="FILE", help="configuration (config.yaml where there is one)")
    made.add_argument("--json", action="store_true", help="print the result as JSON")


def _bounds(made: argparse.ArgumentParser) -> None:
    made.add_argument("--seed", type=int, default=0, help="other seeds draw other samples (0)")
    made.add_argument("--max-usd", type=_positive, metavar="X", help="stop before more money is spent")
    made.add_argument("--max-tokens", type=_count, metavar="N", help="stop before more tokens are used")


def _runner(made: argparse.ArgumentParser) -> None:
    made.add_argument("--runner", metavar="NAME", help="chat, or your agent as python:module:function (chat)")


def _train(made: argparse.ArgumentParser) -> None:
    made.add_argument("--set", type=_set_name, required=True, metavar="S", help="the set to learn for")
    made.add_argument(
        "--from",
        dest="source",
        choices=("traffic", "replay", "dataset"),
        default="traffic",
        help="where groups come from (traffic)",
    )
    made.add_argument("--data", type=Path, metavar="FILE", help="tasks: JSONL, or reasoning-gym:FAMILY?n=200&seed=1")
    made.add_argument("--grader", metavar="NAME", help="how answers are rewarded, for --from dataset and replay")
    _runner(made)
    _guard(made)
    made.add_argument("--recipe", choices=("ours", "paper"), help="paper: every departure from the paper is off")
    made.add_argument(
        "--no-ground-truth", action="store_true", help="show the optimizer no reward: contrast answers that differ"
    )
    made.add_argument("--deploy", action="store_true", help="deploy the new version; a data set's only if it helps")
    made.add_argument("--reuse", action="store_true", help="also learn from groups earlier runs learned from")
    _bounds(made)


def _guard(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--guard",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="tasks the set was not made for, which must not get worse (repeatable)",
    )


def _evaluate(made: argparse.ArgumentParser) -> None:
    made.add_argument("--set", type=versioned, required=True, metavar="S[@V]", help="what to test (newest version)")
    made.add_argument("--against", default="none", metavar="none|live|S@V", help="what to test against (none)")
    made.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FILE",
        help="held-out tasks: JSONL, or reasoning-gym:FAMILY?n=200&seed=1",
    )
    made.add_argument("--grader", metavar="NAME", help="how answers are rewarded (training.grader)")
    _runner(made)
    made.add_argument("--k", type=_count, default=32, help="samples per task and side (32)")
    made.add_argument("--pass-at", type=_count, metavar="J", help="the k of Pass@k, at most --k (--k)")
    _guard(made)
    made.add_argument("--effect", type=_positive, metavar="X", help="the effect to plan for")
    made.add_argument("--plan", action="store_true", help="say what the effect needs, and call no model")
    made.add_argument("--ablate", action="store_true", help="measure what each entry is worth")
    made.add_argument("--prune", action="store_true", help="with --ablate: store a version without what hurts")
    _bounds(made)


def _sets(made: argparse.ArgumentParser) -> None:
    actions = made.add_subparsers(dest="action", metavar="ACTION", required=True)
    _action(actions, "list", "the sets with their newest version and what is live")
    _action(actions, "show", "a version's experiences").add_argument("version", type=versioned, metavar="S[@V]")
    diff = _action(actions, "diff", "what one version has that another has not")
    diff.add_argument("before", type=versioned, metavar="S@A")
    diff.add_argument("after", type=versioned, metavar="S@B")
    deploy = _action(actions, "deploy", "give live requests a version")
    deploy.add_argument("version", type=versioned, metavar="S@V")
    deploy.add_argument("--candidate", type=int, metavar="V", help="a version to try beside it")
    deploy.add_argument("--share", type=float, metavar="X", help="part of new trajectories for the candidate")
    deploy.add_argument("--control", type=float, metavar="X", help="part of new trajectories that get nothing")
    deploy.add_argument("--reason", default="by hand", help="what the history shall say")
    taken = _action(actions, "import", "make a version of a file's lessons: our JSON, flat JSON, an agent's YAML")
    taken.add_argument("file", type=Path, metavar="FILE", help=".json, .yaml or .yml")
    taken.add_argument("--set", type=_set_name, required=True, metavar="S", help="the set that gets the version")
    given = _action(actions, "export", "write a version to a file, or to stdout")
    given.add_argument("version", type=versioned, metavar="S[@V]")
    forms = ("json", "markdown", "reference", "agent-yaml")
    given.add_argument("--format", choices=forms, default="json", help="how it is written (json: with provenance)")
    given.add_argument("--output", type=Path, metavar="FILE", help="where to (stdout)")
    for name, text in (("approve", "let a learned version be deployed"), ("reject", "let a version not be deployed")):
        review = _action(actions, name, text)
        review.add_argument("version", type=versioned, metavar="S@V")
        review.add_argument("--reason", default="", required=name == "reject", help="what the history shall say")
        review.add_argument("--by", metavar="NAME", help="who says so (the user that runs this)")
    history = _action(actions, "history", "who changed what, when and why, the newest first")
    history.add_argument("set", type=_set_name, metavar="S")
    history.add_argument("--verify", action="store_true", help="recompute the hashes, and say where they break")
    history.add_argument(
        "--head", metavar="HASH", help="with --verify: a head that it printed before, to be found again"
    )
    _action(actions, "pending", "lessons that too few groups back to be active").add_argument(
        "set", type=_set_name, metavar="S"
    )
    rollback = _action(actions, "rollback", "go back to the deployment before")
    rollback.add_argument("set", type=_set_name, metavar="S")
    rollback.add_argument("--reason", default="by hand", help="what the history shall say")


def _traffic(made: argparse.ArgumentParser) -> None:
    actions = made.add_subparsers(dest="action", metavar="ACTION", required=True)
    _import(actions)
    given = _action(actions, "export", "write each task's best rollouts as fine-tuning data, one line each")
    given.add_argument("--set", type=_set_name, metavar="S", help="traffic of this set only")
    given.add_argument(
        "--format", choices=("openai", "tfgrpo"), default="openai", help="tfgrpo: all, as it is (openai)"
    )
    given.add_argument("--min-reward", type=_share, default=0.5, metavar="X", help="least reward (0.5)")
    given.add_argument("--output", type=Path, metavar="FILE", help="where to (stdout)")


def _import(actions: Any) -> None:
    taken = _action(actions, "import", "take traffic that something else recorded, so that a set can be trained on it")
    taken.add_argument("file", type=Path, metavar="FILE", help="JSONL, or one JSON list")
    forms = ("openai", "litellm", "tfgrpo")
    taken.add_argument("--format", choices=forms, required=True, help="stored completions, spend logs, our own export")
    taken.add_argument("--set", type=_set_name, required=True, metavar="S", help="the set it is recorded under")
    taken.add_argument("--app", default="default", metavar="A", help="the app it is recorded under (default)")


def _runs(made: argparse.ArgumentParser) -> None:
    # Bare `tfgrpo runs` lists.
    made.set_defaults(set=None)
    actions = made.add_subparsers(dest="action", metavar="ACTION")
    listed = _action(actions, "list", "the runs, newest first")
    listed.add_argument("--set", type=_set_name, metavar="S", help="of this set only")
    _action(actions, "show", "one run, with what came of it").add_argument("id", metavar="ID")
    report = _action(actions, "report", "what a run learned, as Markdown or as one self-contained HTML page")
    report.add_argument("id", metavar="ID")
    report.add_argument("--format", choices=("html", "markdown"), help="(html for a FILE.html, else markdown)")
    report.add_argument("--output", type=Path, metavar="FILE", help="where to (stdout)")


def _purge(made: argparse.ArgumentParser) -> None:
    made.add_argument("--app", metavar="A", help="traffic of this app only")
    made.add_argument("--end-user", metavar="ID", help="trajectories with a request that names this user")
    made.add_argument("--before", metavar="DATE", help="what began before it: 2026-01-31, in UTC")
    made.add_argument("--dry-run", action="store_true", help="count, and erase nothing")


def _withdraw(made: argparse.ArgumentParser) -> None:
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--exchange", metavar="ID", help="the trajectory of this exchange")
    what.add_argument("--app", metavar="A", help="all traffic of this app")
    what.add_argument("--source", metavar="NAME", help="what labels of this source judge; or a source of an entry")
    made.add_argument("--reason", default="", help="what the history shall say")
    made.add_argument("--by", metavar="NAME", help="who says so (the user that runs this)")
    made.add_argument("--deploy", action="store_true", help="give live requests the new version at once")
    made.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")


def _retention(made: argparse.ArgumentParser) -> None:
    # Bare `tfgrpo retention` shows.
    actions = made.add_subparsers(dest="action", metavar="ACTION")
    _action(actions, "show", "the ages, and how much is too old")
    _action(actions, "run", "delete what is too old now; a running proxy does it by itself")


def _backup(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", type=Path, metavar="FILE", help="the copy; it must not be there yet")


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    # SUPPRESS: an option given before the action must not be undone by the action's default.
    made.add_argument("--config", type=Path, metavar="FILE", default=argparse.SUPPRESS, help="configuration")
    made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON")
    return made


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must lie in [0, 1]")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be 1 or more")
    return value
