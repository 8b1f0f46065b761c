"""Assert that optional values are present, for type checkers and at run time."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def known(value: T | None) -> T:
    """The value, which must not be None.

    Raises:
        ValueError: the value is None.
    """
    if value is None:
        raise ValueError("a value that must be known is missing")
    return value


def all_known(values: Mapping[K, T | None]) -> dict[K, T]:
    """The mapping, whose values must not be None.

    Raises:
        ValueError: a value is None.
    """
    return {key: known(value) for key, value in values.items()}
