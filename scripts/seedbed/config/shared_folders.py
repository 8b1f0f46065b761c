"""Check the folders of sources, datasets and models, which experiments share.

A folder's fingerprint.json records its definition and the experiment that made it. An experiment with another
definition of the same name is refused, since it would replace the other experiment's folder.
"""

import itertools
import math
from pathlib import Path
from typing import Any

from seedbed.config.params import of_files, without_prose
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.files import fingerprint, read_json

FOLDERS = {"datasets": "data", "models": "models", "sources": "sources"}  # below results, of each kind


class SharedFolders:
    """The shared folders of an experiment.

    Args:
        config: resolved.
        results: folder of all results.
    """

    def __init__(self, config: dict[str, Any], results: Path):
        self.config = config
        self.results = results
        self._classes: dict[str, list[str]] = {}

    def check(self) -> None:
        """Check the folders of all sources, datasets and models of the grid.

        Raises:
            SeedbedError: another experiment made a folder from another definition, or existing tokens exceed
                `checks.max_unknown_share`.
        """
        used = {kind: self.config["grid"][kind] for kind in ("datasets", "models")}
        blocks = [self.config[kind][name] for kind, names in used.items() for name in names]
        used["sources"] = sorted({block["source"] for block in blocks})
        current = {(kind, name) for kind in FOLDERS for name in used[kind] if self.is_current(kind, name)}
        for dataset, model in itertools.product(used["datasets"], used["models"]):
            if {("datasets", dataset), ("models", model)} <= current:  # else its tokens are made again
                self._check_unknown(dataset, model)

    def _check_unknown(self, dataset: str, model: str) -> None:
        """Check existing tokens against this experiment's limit: making them again would not change them."""
        limit = self.config["checks"]["max_unknown_share"]
        path = self.results / "data" / dataset / model / "tokens" / "statistics.json"
        if not path.exists():
            return
        for split, found in _read_made(path).items():
            # more than the share, where much of it is one piece; earlier versions did not record it
            needed = found.get("least_limit", found["unknown_share"])
            if needed > limit:
                raise SeedbedError(
                    f"more than {limit:.1%} of the pieces in the split {split!r} of {dataset!r} are unknown "
                    f"to {model!r}, or a tenth of that is one piece",
                    where=f"{path}; config, checks.max_unknown_share",
                    found=f"{found['unknown_share']:.2%}",
                    hint=f"set checks.max_unknown_share to {math.ceil(1000 * needed) / 1000} or more, if the "
                    "texts and the model are the right ones",
                )

    def is_current(self, kind: str, name: str) -> bool:
        """Whether a folder exists and has the present definition; else it is made again.

        Raises:
            SeedbedError: the folder has another definition, from another experiment.
        """
        path = self.results / FOLDERS[kind] / name / "fingerprint.json"
        if not path.exists():
            return False
        found = _read_made(path)
        same = found["fingerprint"] == fingerprint(self.definition(kind, name))
        if not same and found["experiment"] != self.config["experiment"]:
            raise SeedbedError(
                f"{name!r} has another definition in experiment {found['experiment']!r}",
                where=f"config, {kind}.{name}; {path}",
                found=f"fingerprint {found['fingerprint']}, made by experiment {found['experiment']!r}",
                hint=_redefined(kind, name, path.parent),
            )
        return same

    def definition(self, kind: str, name: str) -> dict[str, Any]:
        """The definition behind a shared folder's fingerprint; it includes that of its source."""
        if kind == "sources":
            source = self.config["sources"][name]
            # a hash defines a source independently of its location
            keys = ("sha256",) if source["sha256"] else ("locations", "version")
            return {key: source[key] for key in (*keys, "kind", "include")}
        block = self.config[kind][name]
        own = self.dataset_definition(name) if kind == "datasets" else without_prose(block)
        return {"definition": own, "source": self.definition("sources", block["source"])}

    def dataset_definition(self, name: str) -> dict[str, Any]:
        """A dataset's definition without descriptions."""
        definition = of_files(self.config["datasets"][name])
        return definition | ({"label_names": self.classes_of(name)} if "label_names" in definition else {})

    def classes_of(self, name: str) -> list[str]:
        """Names of a dataset's classes in its files and runs: the labels instead of `label_names`.

        Tables insert `label_names`, so that changing them trains nothing. Files of earlier versions have the
        label_names of that time and keep them, since a run's identity depends on its file of labels.
        """
        if name not in self._classes:
            self._classes[name] = self._names_on_disk(name) or self.config["datasets"][name]["labels"]
        return self._classes[name]

    def _names_on_disk(self, name: str) -> list[str] | None:
        """The class names in a dataset's folder, if its definition is the present one except for these."""
        folder, block = self.results / "data" / name, self.config["datasets"][name]
        try:
            names = read_json(folder / "labels.json")["names"]
            made = read_json(folder / "fingerprint.json")["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        meant = {
            "definition": of_files(block) | {"label_names": names},
            "source": self.definition("sources", block["source"]),
        }
        return names if made == fingerprint(meant) else None

    def stamp(self, kind: str, name: str) -> dict[str, Any]:
        """The fingerprint of a source's, dataset's or model's folder."""
        return {"fingerprint": fingerprint(self.definition(kind, name))}


def _redefined(kind: str, name: str, folder: Path) -> str:
    """The remedy if a name has another definition in another experiment."""
    other = f"{name}_2"
    if kind == "sources":
        own = (
            f"define sources.{other} and name it as the source of datasets or models with names of their own"
        )
    else:
        own = f"define {kind}.{other} with this definition and put it into grid.{kind} in place of {name}"
    return (
        f"{own} (make compare SAME={name}={other} compares the two); or keep this experiment apart "
        f"from the others: set results to another folder; or remove {folder} to make it again for all"
    )


def _read_made(path: Path) -> Any:
    """A JSON file that a rule wrote.

    Raises:
        SeedbedError: the file was changed since. (--forcerun would not help: without a plan there are no
            rules.)
    """
    try:
        checksums.compare([path])
        return read_json(path)
    except (SeedbedError, ValueError) as error:
        raise SeedbedError(
            "a file was changed or damaged since its rule wrote it",
            where=str(path),
            hint="remove it, and run the same command again",
        ) from error
