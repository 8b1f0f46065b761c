"""Which column of a table has which role."""

from collections.abc import Mapping, Sequence

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.outside.metrics import plain

# by role, the names that are recognised; the first one counts even where others stand beside it
NAMES: Mapping[str, Sequence[str]] = {
    "system": ("system", "model", "model_name", "run"),
    "seed": ("seed", "random_seed"),
    "example": ("example", "example_id", "doc_id", "id", "idx"),
    "label": ("label", "target", "gold", "reference"),
    "prediction": ("prediction", "pred", "output"),
    "score": ("score", "correct", "acc", "accuracy", "exact_match", "em", "f1"),
    "dataset": ("dataset", "task"),
    "cluster": ("cluster",),
}
OF_CLASSES = ("label", "prediction")


def roles(
    header: Sequence[str], columns: Mapping[str, str] | None, metric: str | None, where: str
) -> dict[str, str]:
    """By role the column that has it: as given, or by its name, if only one fits.

    A table has label and prediction, or score; one of scores may lack examples. Of both, score counts if it
    was given, or if `metric` names a column; else label and prediction.

    Args:
        header: the table's columns.
        columns: by role the column that a user names.
        metric: the metric that a user names; None: accuracy, or the column of scores.
        where: the table, for errors.

    Raises:
        SeedbedError: a role is unknown; a column is missing; several columns fit a role.
    """
    given = dict(columns or {})
    _check_given(given, header, where)
    if metric and "score" not in given and plain(metric) != "accuracy" and metric in header:
        given["score"] = metric
    open_header = [name for name in header if name not in given.values()]
    scored = "score" in given
    found = dict(given)
    for role in ("system", "example", "seed", "dataset", "cluster"):
        _recognise(role, open_header, found, where)
    if not scored:
        for role in OF_CLASSES:
            _recognise(role, open_header, found, where)
        scored = not all(role in found for role in OF_CLASSES)
    if scored:
        found = {role: name for role, name in found.items() if role not in OF_CLASSES}
        _recognise("score", open_header, found, where)
    else:
        _require_accuracy(metric, header, where)
    _require(found, header, where)
    return found


def _check_given(given: Mapping[str, str], header: Sequence[str], where: str) -> None:
    if twice := [name for name in given.values() if list(given.values()).count(name) > 1]:
        raise SeedbedError(
            "a column has two roles",
            where="columns",
            found=", ".join(f"{role}={name}" for role, name in given.items() if name in twice),
            hint="name another column for one of them",
        )
    for role, name in given.items():
        if role not in NAMES:
            raise SeedbedError(
                "an unknown role of a column",
                where="columns",
                found=f"{role}={name}",
                hint=f"{spelling.nearest(role, NAMES)}the roles are {', '.join(NAMES)}",
            )
        if name not in header:
            raise SeedbedError(
                f"the table has no column {name!r}",
                where=f"{where}, line 1",
                found=f"the columns {', '.join(header)}",
                hint=f"{spelling.nearest(name, header)}name the column with {role}=NAME in columns",
            )


def _recognise(role: str, header: Sequence[str], found: dict[str, str], where: str) -> None:
    """Add the column of a role to `found`, if its name is known and no other column fits."""
    if role in found:
        return
    fitting = [name for name in header if name.strip().casefold() in NAMES[role]]
    own = [name for name in fitting if name.strip().casefold() == NAMES[role][0]]
    if len(own or fitting) > 1:
        raise SeedbedError(
            f"several columns may be the {role}",
            where=f"{where}, line 1",
            found=", ".join(own or fitting),
            hint=f"name one of them: {role}={(own or fitting)[0]} in columns",
        )
    if fitting:
        found[role] = (own or fitting)[0]


def _require_accuracy(metric: str | None, header: Sequence[str], where: str) -> None:
    if metric and plain(metric) != "accuracy":
        raise SeedbedError(
            f"the table has no column {metric!r}, and labels and predictions give the accuracy alone",
            where=f"{where}, line 1",
            found=f"the columns {', '.join(header)}",
            hint=f"{spelling.nearest(metric, header)}name the column of its scores in columns: score=NAME",
        )


def _require(found: Mapping[str, str], header: Sequence[str], where: str) -> None:
    missing = [role for role in ("system", "example") if role not in found]
    if "score" in found:  # without examples it is the score of a run
        missing = [role for role in missing if role != "example"]
    if "score" not in found and not all(role in found for role in OF_CLASSES):
        missing.append("label and prediction, or score")
    if not missing:
        return
    free = [name for name in header if name not in found.values()]
    role = missing[0] if missing[0] in NAMES else "score"
    example = f"{role}={free[0] if free else 'NAME'}"
    raise SeedbedError(
        f"the table has no column for {', nor for '.join(missing)}",
        where=f"{where}, line 1",
        found=f"the columns {', '.join(header)}",
        hint=f"name the column in columns, such as {example}; if there is none, add it to the table",
    )
