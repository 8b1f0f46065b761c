"""The types of values in the config, and how they are read.

Types are strict: text is not a number and true is not 1. Two exceptions: YAML 1.1 reads 1e-5 as text (it
wants 1.0e-5), and `--config` passes "true" and "20" as text.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WrapValidator

from seedbed.core import spelling
from seedbed.core.tasks import CLASSES, DEFAULT, TASKS, VALUES

# matches only at the end of the text; in Python, $ also matches before a line end
END = r"$(?!\n)"
IN_QUOTES = 'put labels into quotes, written as in the file: labels: ["no", "yes"]; '
AS_YAML = (
    "without quotes, YAML reads no, off and false as false, yes, on and true as true, 01 as 1 and 2024-01-31 "
    "as a date"
)
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "cp1251", "mac-roman", "gb18030", "shift_jis")
OF_CLASSES = ("labels", "label_names", "other_labels", "absent_classes")  # keys of datasets
LARGEST_SEED = 2**31 - 1  # accepted by all libraries


class WrongValue(ValueError):
    """A wrong value with a specific explanation.

    Args:
        what: the fault.
        hint: the remedy.
        key: the key inside the value's block; "": the value itself.
        found: the wrong value.
    """

    def __init__(self, what: str, *, hint: str, found: Any, key: str = ""):
        super().__init__(what)
        self.hint, self.key, self.found = hint, key, found


def read_number(value: Any) -> Any:
    """A number from text; anything else unchanged."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return value
    if not math.isfinite(number):
        return value
    return int(value) if value.lstrip("+-").isdigit() else number


def read_whole(value: Any) -> Any:
    """A whole number from text, also from 1e4; anything else unchanged."""
    number = read_number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def read_switch(value: Any) -> Any:
    """True or False from text; anything else unchanged."""
    return value == "true" if value in ("true", "false") else value


def check_number(value: Any, check: Callable[[Any], float]) -> int | float:
    """Check a number as a float, but keep an integer: 32 and 32.0 differ in a run's params."""
    number = read_number(value)
    check(number)
    return number


def check_unique(values: list[Any]) -> list[Any]:
    """Refuse a list with repeated values."""
    if any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError("has non-unique elements")
    return values


def check_finite(value: Any) -> Any:
    """Refuse NaN and infinity, which YAML can write."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("is not finite")
    return value


def read_label(label: Any) -> str:
    """The text of a label, stripped as labels in files; numbers, true and false need no quotes."""
    if isinstance(label, bool):
        return str(label).lower()
    label = int(label) if isinstance(label, float) and label.is_integer() else label
    if not isinstance(label, (str, int, float)) or (isinstance(label, float) and not math.isfinite(label)):
        raise WrongValue(
            f"a label is neither text nor a number: {label!r}", found=label, hint=f"{IN_QUOTES}{AS_YAML}"
        )
    return str(label).strip()


def check_truths(labels: Any) -> Any:
    """Refuse truth values beside other labels: YAML has probably read no or yes as one."""
    if isinstance(labels, list) and 0 < sum(isinstance(label, bool) for label in labels) < len(labels):
        found = next(label for label in labels if isinstance(label, bool))
        raise WrongValue(
            f"a label is not text: {found!r}, beside labels that are",
            found=found,
            hint=f"{IN_QUOTES}{AS_YAML}",
        )
    return labels


def read_group(group: Any) -> Any:
    """The values of a group as a list; bounds unchanged."""
    return group if isinstance(group, (list, dict)) else [group]


def check_group_names(groups: dict[str, Any]) -> dict[str, Any]:
    """Refuse names of groups that YAML has read as truth values."""
    for name in groups:
        if name in ("True", "False"):
            raise WrongValue(f"the name of a group is {name}", found=name, hint=f"{IN_QUOTES}{AS_YAML}")
    return groups


def check_encoding(name: str) -> str:
    """Refuse the name of an encoding that Python does not know."""
    try:
        "a".encode(name)
    except LookupError:
        raise WrongValue(
            f"unknown encoding {name!r}",
            found=name,
            hint=f"{spelling.nearest(name, ENCODINGS)}usual ones: {', '.join(ENCODINGS)}",
        ) from None
    return name


def check_labels(labels: list[str]) -> list[str]:
    """Refuse labels that are equal as text, in any form of Unicode."""
    if len(set(map(spelling.normal, labels))) != len(labels):
        raise WrongValue(
            "a label is repeated",
            found=labels,
            hint="labels are compared as text, without spaces around them: 1 and '1' are the same",
        )
    return labels


def check_task(dataset: Any) -> Any:
    """Refuse a dataset of an unknown task, before keys of a known task are missed."""
    task = task_of_dataset(dataset)
    if task not in list(TASKS):  # a list, since the value need not be hashable
        raise WrongValue(
            f"unknown task {task!r}",
            key="task",
            found=task,
            hint=f"{spelling.nearest(str(task), TASKS, cutoff=0.85)}give "
            f"{' or '.join(f'{each.name} ({each.meaning})' for each in TASKS.values())}; labels of words "
            "are not supported",
        )
    _refuse_foreign(dataset, task)
    _refuse_sets(dataset, task)
    return dataset


def _refuse_foreign(dataset: Any, task: str) -> None:
    """Refuse keys of classes in a dataset of numbers, with a better remedy than another key's name."""
    found = [key for key in dataset if key in OF_CLASSES] if TASKS[task].outputs == VALUES else []
    if found:
        raise WrongValue(
            f"the task {task} has no {found[0]}: its labels are numbers",
            key=found[0],
            found=dataset[found[0]],
            hint=f"leave {found[0]} out, or set task: {DEFAULT} for labels that are names",
        )


def _refuse_sets(dataset: Any, task: str) -> None:
    """Refuse keys of texts with several labels in a dataset of classes, and name the task that takes them."""
    if not isinstance(dataset, dict) or TASKS[task].outputs != CLASSES:
        return
    columns = dataset.get("columns")
    label = columns.get("label") if isinstance(columns, dict) else None
    separator = dataset.get("label_separator")
    columns_of_labels = label if isinstance(label, list) else None
    for key, found in (("label_separator", separator), ("columns.label", columns_of_labels)):
        if found is not None:
            raise WrongValue(
                f"the task {task} has one label for a text",
                key=key,
                found=found,
                hint="for texts with any number of labels, set task: multilabel",
            )


def task_of_dataset(dataset: Any) -> Any:
    """The task of a dataset of the config."""
    return dataset.get("task", DEFAULT) if isinstance(dataset, dict) else DEFAULT


def kind_of_axis(value: Any) -> str:
    """The tag of a sweep's values: those of a range have a start, and those between bounds low and high."""
    if not isinstance(value, dict):
        return "<values>"
    return "<bounds>" if value.keys() & {"low", "high", "scale"} else "<range>"


def either(kind: type, first: Any, otherwise: Any) -> Any:
    """The type `first` for values of a kind, and `otherwise` for all others.

    So an error is about the intended alternative and not about each in turn. In the location of an error the
    alternatives are <first> and <otherwise>.
    """
    return Annotated[
        Annotated[first, Tag("<first>")] | Annotated[otherwise, Tag("<otherwise>")],
        Discriminator(lambda value: "<first>" if isinstance(value, kind) else "<otherwise>"),
    ]


def whole(**limits: int) -> Any:
    """A whole number; limits are those of pydantic's `Field`: ge, le, gt, lt."""
    return Annotated[int, Field(strict=True, **limits), BeforeValidator(read_whole)]


def number(**limits: float) -> Any:
    """A finite number; for limits see `whole`."""
    return Annotated[float, Field(strict=True, allow_inf_nan=False, **limits), WrapValidator(check_number)]


Text = Annotated[str, Field(strict=True)]
NonEmptyText = Annotated[Text, Field(min_length=1)]
Switch = Annotated[bool, Field(strict=True), BeforeValidator(read_switch)]
Count = whole(ge=1)
NonNegativeWhole = whole(ge=0)
Seed = whole(ge=0, le=LARGEST_SEED)
Positive = number(gt=0)
NonNegative = number(ge=0)
FiniteNumber = number()
Share = number(ge=0, le=1)
PositiveShare = number(gt=0, le=1)
ShareBelowOne = number(ge=0, lt=1)
Probability = number(gt=0, lt=1)

Unique = (Field(json_schema_extra={"uniqueItems": True}), AfterValidator(check_unique))
Names = Annotated[list[Text], Field(min_length=1), *Unique]
NonEmptyNames = Annotated[list[NonEmptyText], Field(min_length=1), *Unique]
Name = Annotated[
    Text,
    Field(
        pattern=rf"^[A-Za-z0-9][A-Za-z0-9_.-]*{END}",
        max_length=150,
        description="A name, which is a part of paths: letters, digits, and _ . - after the first; 150 at "
        "most.",
    ),
]
Label = Annotated[Text, BeforeValidator(read_label, json_schema_input_type=str | float | bool)]
Values = Annotated[list[Label], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
LabelList = Annotated[
    list[Label],
    Field(min_length=2, json_schema_extra={"uniqueItems": True}),
    BeforeValidator(check_truths),
    AfterValidator(check_labels),
]
Encoding = Annotated[Text, AfterValidator(check_encoding)]
# one or several columns; in the resolved config a list
Columns = Annotated[
    Names,
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=Text | Names
    ),
]
# one column of labels, or a column for each label
LabelColumns = either(list, Annotated[list[NonEmptyText], Field(min_length=2), *Unique], NonEmptyText)
