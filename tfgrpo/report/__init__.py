"""The report of a training run, Markdown or one HTML page, made from what the store holds of the run and nothing else.

All that is shown came from models, users and graders: the HTML is escaped by the template engine, the Markdown by the
same function that exports use. The page loads nothing and runs nothing; its own policy (CSP) forbids both.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Final

import jinja2

from tfgrpo.inheritance.markdown import escape
from tfgrpo.report import words
from tfgrpo.report.chart import Chart
from tfgrpo.report.record import Record
from tfgrpo.store import Run

_LOADER: Final = jinja2.PackageLoader("tfgrpo.report")


def html(run: Run) -> str:
    """Return the report as a self-contained page; UsageError when the run's result has another form."""
    template = _engine(None).get_template("report.html")
    return template.render(**_values(run), style=_style(), style_digest=_digest(_style()))


def policy() -> str:
    """Return what a page of `html` needs to be allowed (a Content-Security-Policy): its own style, and nothing else."""
    return f"default-src 'none'; style-src 'sha256-{_digest(_style())}'; base-uri 'none'; form-action 'none'"


def markdown(run: Run) -> str:
    """Return the report as Markdown; UsageError when the run's result has another form."""
    return _engine(lambda value: escape(str(value))).get_template("report.md").render(**_values(run))


WRITERS: Final[Mapping[str, Callable[[Run], str]]] = {"html": html, "markdown": markdown}
"""How a report is written, by the name of the format."""


def _style() -> str:
    return _engine(None).get_template("style.css").render()


def _digest(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _values(run: Run) -> dict[str, object]:
    record = Record.of(run)
    return {"run": record, "words": words, "chart": Chart.of(record)}


def _engine(finalize: Callable[[object], str] | None) -> jinja2.Environment:
    """Return the engine; `finalize` sees every value, but not the template's own text."""
    return jinja2.Environment(
        loader=_LOADER,
        autoescape=jinja2.select_autoescape(("html",)),
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
