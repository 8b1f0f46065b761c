"""Normalise parts of the config for the params of rules and for fingerprints."""

from typing import Any


def without_prose(definition: dict[str, Any]) -> dict[str, Any]:
    """A source's, dataset's or model's definition without keys that only describe it."""
    return {
        key: value for key, value in definition.items() if key not in ("description", "language", "licence")
    }


def of_files(definition: dict[str, Any]) -> dict[str, Any]:
    """A dataset's definition without keys on which its files do not depend."""
    return {key: value for key, value in without_prose(definition).items() if key != "metric"}


def canonical(value: Any) -> Any:
    """The value with sorted keys, except in `swept`, whose order counts.

    Snakemake compares params as text, but the order of keys in the config means nothing.
    """
    if isinstance(value, dict):
        keys = sorted(value)
        return {key: value[key] if key == "swept" else canonical(value[key]) for key in keys}
    return [canonical(item) for item in value] if isinstance(value, list) else value
