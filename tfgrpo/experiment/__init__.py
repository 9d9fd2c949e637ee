"""Live experiments: which arm a trajectory falls into, what the arms' labels show, and what follows from it.

Pure: no store, no HTTP, no clock. `arms` draws; `sequence` says what is more than chance however often one looks;
`effect` makes scores of outcomes; `account` keeps an experiment's books; `decision` reads them; `spans`
finds the experiments of a history.
"""

from __future__ import annotations

from tfgrpo.experiment.account import Account as Account
from tfgrpo.experiment.account import Seen as Seen
from tfgrpo.experiment.arms import draw as draw
from tfgrpo.experiment.arms import name as name
from tfgrpo.experiment.decision import Decision as Decision
from tfgrpo.experiment.decision import Levels as Levels
from tfgrpo.experiment.decision import decide as decide
from tfgrpo.experiment.spans import Span as Span
from tfgrpo.experiment.spans import compares as compares
from tfgrpo.experiment.spans import shares as shares
from tfgrpo.experiment.spans import spans as spans
