"""The values of a column that an index begins with, found by leaping from one to the next.

Neither database does that of itself: asked for the distinct sets of a million rows, both read the rows.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Select, func, select


def distinct(column: Column[Any]) -> Select[Any]:
    """Return the query of a column's values but for null, each once, in the database's order."""
    leaps = select(func.min(column).label("value")).cte("leaps", recursive=True)
    following = select(func.min(column)).where(column > leaps.c.value).scalar_subquery()
    leaps = leaps.union_all(select(following).where(leaps.c.value.is_not(None)))
    return select(leaps.c.value).where(leaps.c.value.is_not(None))
