"""The columns of the labels of a multi-label dataset: one with sets, or one for each label."""

from typing import Any

from seedbed.core.errors import SeedbedError


def complete(name: str, dataset: dict[str, Any]) -> None:
    """Fill in the labels if the names of columns say them; an unused separator is removed.

    Raises:
        SeedbedError: there are no labels, or they or a separator stand beside a column for each label.
    """
    columns, where = dataset["columns"]["label"], f"config, datasets.{name}"
    if isinstance(columns, str):
        if dataset["labels"] is None:
            raise SeedbedError(
                f"the labels of {name!r} are not declared",
                where=f"{where}.labels",
                hint="list the labels that a text may have: labels: [a, b, c]",
            )
    else:
        for key in ("labels", "label_separator"):
            if dataset[key] is not None:
                raise SeedbedError(
                    f"{key} and a column for each label exclude each other",
                    where=f"{where}.{key}",
                    found=repr(dataset[key]),
                    hint="leave it out: the names of the columns are the labels, and label_names gives other "
                    "names for people",
                )
        dataset["labels"] = list(columns)
    if dataset["label_separator"] is None:
        del dataset["label_separator"]
