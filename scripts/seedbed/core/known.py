"""Values that may be missing, taken where they are there: for types, and for an error that says so."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def known(value: T | None) -> T:
    """The value, which is not None.

    Raises:
        ValueError: it is None.
    """
    if value is None:
        raise ValueError("a value that must be known is missing")
    return value


def all_known(values: Mapping[K, T | None]) -> dict[K, T]:
    """The values, of which none is None.

    Raises:
        ValueError: one is None.
    """
    return {key: known(value) for key, value in values.items()}
