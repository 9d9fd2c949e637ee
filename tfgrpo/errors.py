"""The errors of this package.

    TfgrpoError
    ├── UsageError            the caller asked for something that cannot be: a value, a combination
    │   └── DatasetError      a row of a file lacks what is needed; names the line
    ├── NotFound              a set, version, exchange, run that does not exist
    ├── Conflict              it exists, but not in the state that was expected
    ├── StoreError            the store cannot be opened, or does not answer
    │   └── StoreAway         it cannot be reached now; whoever waits may find it
    ├── GraderError           a grader failed on one rollout: it raised, hung, or gave no reward
    ├── ModelError            a model's endpoint refused, or gave nothing usable
    │   └── RequestRefused    it refused this one request; others may well be answered
    └── BudgetExceeded        the money or tokens allowed are used up; what is finished is kept
        └── OutOfCredit       not what was allowed, but the provider's account

Each message says what happened, for which value, and what to do about it, on one line.
"""

from __future__ import annotations


class TfgrpoError(Exception):
    """Everything this package raises on purpose."""


class UsageError(TfgrpoError):
    """The caller asked for something that cannot be. `field` names the offending part where there is one."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class DatasetError(UsageError):
    """A row of a dataset lacks what is needed."""


class NotFound(TfgrpoError):  # noqa: N818 - reads as what it says where it is caught
    """What was named does not exist."""


class Conflict(TfgrpoError):  # noqa: N818 - as above
    """What was named is not in the state the caller expected."""


class StoreError(TfgrpoError):
    """The store cannot be opened, or did not answer."""


class StoreAway(StoreError):  # noqa: N818 - as above
    """The store's server cannot be reached now. That it is wrongly named is another error, where one can tell."""


class GraderError(TfgrpoError):
    """A grader failed on a rollout, through no fault of the answer. The rollout stays unjudged."""


class ModelError(TfgrpoError):
    """A model's endpoint refused, or gave nothing usable."""


class RequestRefused(ModelError):  # noqa: N818 - as above
    """The endpoint will not answer this one request: too long, or not to its liking."""


class BudgetExceeded(TfgrpoError):  # noqa: N818 - as above
    """The allowed money or tokens are used up. Finished work is kept; a later run goes on from it."""


class OutOfCredit(BudgetExceeded):
    """A provider refuses because the account has no money. It ends work as a budget does."""
