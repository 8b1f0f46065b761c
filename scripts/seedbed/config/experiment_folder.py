"""The folder of an experiment from its config files, which are not checked. Light to import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedbed.config.yaml_files import refuse_unreadable
from seedbed.sources.locations import ROOT


def folder_of(configs: Sequence[Path]) -> Path:
    """results/EXPERIMENT by config.yaml and config files on top of it; later ones override.

    Raises:
        SeedbedError: a config file is missing, or is no YAML.
    """
    told = {"results": "results"}
    for path in (ROOT / "config.yaml", *configs):
        found = _read(path)
        told |= {key: found[key] for key in ("results", "experiment") if key in found}
    return Path(told["results"]).expanduser() / str(told["experiment"])


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError):
        refuse_unreadable(path)
        raise
