"""The folders of sources, datasets and models, which experiments share: each has one definition.

A folder's fingerprint.json says what it was made from, and by which experiment. An experiment that means
something else by the same name is refused, instead of making the folder anew under the other one.
"""

import itertools
import math
from pathlib import Path
from typing import Any

from seedbed.config.params import without_prose
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.files import fingerprint, read_json

FOLDERS = {"datasets": "data", "models": "models", "sources": "sources"}  # below results, of each kind


class SharedFolders:
    """The shared folders of an experiment.

    Args:
        config: resolved.
        results: folder of everything that is made.
    """

    def __init__(self, config: dict[str, Any], results: Path):
        self.config = config
        self.results = results
        self._classes: dict[str, list[str]] = {}

    def check(self) -> None:
        """Check the folders of all sources, datasets and models of the grid.

        Raises:
            SeedbedError: one was made from another definition in another experiment; tokens that are there
                hold more unknown ones than `checks.max_unknown_share`.
        """
        used = {kind: self.config["grid"][kind] for kind in ("datasets", "models")}
        blocks = [self.config[kind][name] for kind, names in used.items() for name in names]
        used["sources"] = sorted({block["source"] for block in blocks})
        current = {(kind, name) for kind in FOLDERS for name in used[kind] if self.is_current(kind, name)}
        for dataset, model in itertools.product(used["datasets"], used["models"]):
            if {("datasets", dataset), ("models", model)} <= current:  # else its tokens are made anew
                self._check_unknown(dataset, model)

    def _check_unknown(self, dataset: str, model: str) -> None:
        """Check tokens that exist against this experiment's limit: made anew, they would be the same."""
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
        """Whether a folder exists and is of the present definition; else it is made anew.

        Raises:
            SeedbedError: it is of another definition, in another experiment.
        """
        path = self.results / FOLDERS[kind] / name / "fingerprint.json"
        if not path.exists():
            return False
        found = _read_made(path)
        same = found["fingerprint"] == fingerprint(self.definition(kind, name))
        if not same and found["experiment"] != self.config["experiment"]:
            raise SeedbedError(
                f"{name!r} means something else in experiment {found['experiment']!r}",
                where=f"config, {kind}.{name}; {path}",
                found=f"fingerprint {found['fingerprint']}, made by experiment {found['experiment']!r}",
                hint=_redefined(kind, name, path.parent),
            )
        return same

    def definition(self, kind: str, name: str) -> dict[str, Any]:
        """The definition whose fingerprint a shared folder bears; a block's holds that of its source."""
        if kind == "sources":
            source = self.config["sources"][name]
            # a hash says what a source is, wherever it lies
            keys = ("sha256",) if source["sha256"] else ("locations", "version")
            return {key: source[key] for key in (*keys, "kind", "include")}
        block = self.config[kind][name]
        own = self.dataset_definition(name) if kind == "datasets" else without_prose(block)
        return {"definition": own, "source": self.definition("sources", block["source"])}

    def dataset_definition(self, name: str) -> dict[str, Any]:
        """A dataset, without what only the report reads."""
        definition = without_prose(self.config["datasets"][name])
        return definition | ({"label_names": self.classes_of(name)} if "label_names" in definition else {})

    def classes_of(self, name: str) -> list[str]:
        """What the files of a dataset and its runs call its classes: the labels, and never `label_names`.

        Tables put the names in, so that a change of them trains nothing. Files of earlier versions hold the
        names of then, and keep them, since the identity of a run rests on the file of its labels.
        """
        if name not in self._classes:
            self._classes[name] = self._names_on_disk(name) or self.config["datasets"][name]["labels"]
        return self._classes[name]

    def _names_on_disk(self, name: str) -> list[str] | None:
        """The names in a dataset's folder, if it is of the present definition but for them."""
        folder, block = self.results / "data" / name, self.config["datasets"][name]
        try:
            names = read_json(folder / "labels.json")["names"]
            made = read_json(folder / "fingerprint.json")["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        meant = {
            "definition": without_prose(block) | {"label_names": names},
            "source": self.definition("sources", block["source"]),
        }
        return names if made == fingerprint(meant) else None

    def stamp(self, kind: str, name: str) -> dict[str, Any]:
        """The fingerprint that goes into the folder of a source, dataset or model."""
        return {"fingerprint": fingerprint(self.definition(kind, name))}


def _redefined(kind: str, name: str, folder: Path) -> str:
    """What to do if a name has another meaning in another experiment."""
    other = f"{name}_2"
    if kind == "sources":
        own = (
            f"define sources.{other} and name it as the source of datasets or models with names of their own"
        )
    else:
        own = f"define {kind}.{other} with this definition and put it into grid.{kind} in place of {name}"
    return (
        f"{own} (scripts/compare.py --same {name}={other} compares the two); or keep this experiment apart "
        f"from the others: set results to another folder; or remove {folder}, so that it is made anew for all"
    )


def _read_made(path: Path) -> Any:
    """A JSON file that a rule wrote.

    Raises:
        SeedbedError: it was changed since. --forcerun is no remedy, as without a plan there are no rules.
    """
    try:
        checksums.compare([path])
        return read_json(path)
    except (SeedbedError, ValueError) as error:
        raise SeedbedError(
            "a file is not what its rule wrote: it was changed or damaged since",
            where=str(path),
            hint="remove it, and run the same command again",
        ) from error
