"""Training-Free GRPO as a library: a dataset and a grader in, an experience set out.

These names are its public API, with `docs/python.md` as their documentation. Each is loaded when it is first asked
for: `import tfgrpo` costs next to nothing, and the command line's help nothing more.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tfgrpo.api import Trained as Trained
    from tfgrpo.api import evaluate as evaluate
    from tfgrpo.api import load_library as load_library
    from tfgrpo.api import load_tasks as load_tasks
    from tfgrpo.api import save_library as save_library
    from tfgrpo.api import split as split
    from tfgrpo.api import train as train
    from tfgrpo.configuration import Model as Model
    from tfgrpo.errors import TfgrpoError as TfgrpoError
    from tfgrpo.evaluation import Evaluation as Evaluation
    from tfgrpo.types import Experience as Experience
    from tfgrpo.types import Library as Library
    from tfgrpo.types import Rollout as Rollout
    from tfgrpo.types import Task as Task

_HOMES: Final = {
    "Evaluation": "tfgrpo.evaluation",
    "Experience": "tfgrpo.types",
    "Library": "tfgrpo.types",
    "Model": "tfgrpo.configuration",
    "Rollout": "tfgrpo.types",
    "Task": "tfgrpo.types",
    "TfgrpoError": "tfgrpo.errors",
    "Trained": "tfgrpo.api",
    "evaluate": "tfgrpo.api",
    "load_library": "tfgrpo.api",
    "load_tasks": "tfgrpo.api",
    "save_library": "tfgrpo.api",
    "split": "tfgrpo.api",
    "train": "tfgrpo.api",
}

__all__ = list(_HOMES)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module 'tfgrpo' has no attribute {name!r}; it has {', '.join(_HOMES)}")
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """List the public names too that nobody has asked for yet."""
        return sorted({*globals(), *_HOMES})
