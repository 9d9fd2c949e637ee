"""The programs: how each is installed, pointed at a base URL and given one task, with no person beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KEY = "sk-agents-1"
TASK = "What is 2+2? Use a tool first."
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens: the packages, a home of its own, a folder to work in, and the server to ask."""

    packages: Path
    home: Path
    work: Path
    root: str

    def node(self, program: str) -> str:
        """Return a program that npm installed."""
        return str(self.packages / "node_modules/.bin" / program)

    def python(self, name: str) -> str:
        """Return a program of a virtual environment."""
        return str(self.packages / name)


@dataclass(frozen=True, slots=True)
class Run:
    """One command line and what it finds in its environment."""

    words: list[str]
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Program:
    """`pip`: packages for a virtual environment of its own named after it; else `npm`."""

    name: str
    packages: tuple[str, ...]
    run: Callable[[Place], Run]
    pip: bool = False


def _codex(place: Place) -> Run:
    folder = place.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model = "gpt-5"\nmodel_provider = "proxy"\n[analytics]\nenabled = false\n[model_providers.proxy]\n'
        f'name = "proxy"\nbase_url = "{place.root}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    )
    words = [place.node("codex"), "exec", "--skip-git-repo-check", "--json", "-s", "danger-full-access", TASK]
    return Run(words, {"OPENAI_API_KEY": KEY})


def _claude(place: Place) -> Run:
    words = [place.node("claude"), "-p", TASK, "--allowedTools", "Bash(echo:*)"]
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return Run(words, {"ANTHROPIC_BASE_URL": place.root, "ANTHROPIC_API_KEY": KEY, **quiet})


def _opencode(place: Place) -> Run:
    options = {"baseURL": f"{place.root}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"gpt-5": {}}}
    (place.work / "opencode.json").write_text(json.dumps({"provider": {"proxy": provider}, "autoupdate": False}))
    quiet = {"OPENAI_API_KEY": KEY, "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return Run([place.node("opencode"), "run", "-m", "proxy/gpt-5", TASK], quiet)


def _aider(place: Place) -> Run:
    words = [place.python("aider/bin/aider"), "--model", "openai/gpt-5", "--message", TASK, "--no-git", "--yes-always"]
    quiet = ["--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-pretty", "--no-gitignore"]
    base = {"OPENAI_API_BASE": f"{place.root}/v1", "OPENAI_API_KEY": KEY}
    return Run([*words, *quiet], {**base, "LITELLM_LOCAL_MODEL_COST_MAP": "True"})


def _javascript(place: Place) -> Run:
    # A module finds its packages from where it stands.
    script = place.packages / "sdks.mjs"
    script.write_text((HERE / "sdks.mjs").read_text())
    return Run(["node", str(script)], {"ROOT": place.root, "KEY": KEY})


def _sdks(place: Place) -> Run:
    return Run([place.python("sdks/bin/python"), str(HERE / "sdks.py")], {"ROOT": place.root, "KEY": KEY})


PROGRAMS = (
    Program("codex", ("@openai/codex",), _codex),
    Program("claude", ("@anthropic-ai/claude-code",), _claude),
    Program("opencode", ("opencode-ai",), _opencode),
    Program("aider", ("aider-chat",), _aider, pip=True),
    Program("javascript", ("openai", "@anthropic-ai/sdk", "@openai/agents", "zod"), _javascript),
    Program("sdks", ("openai-agents", "langchain-openai", "langchain-anthropic"), _sdks, pip=True),
)
