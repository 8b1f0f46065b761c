"""The identity of a run: a hash of settings, inputs, package versions, and training code.

Code counts by its meaning: the syntax trees of the modules that may change a number, under logical names,
without docstrings and without the packages in imports. So moving a module or editing a comment does not
change the identity.

A refactoring does change the trees. So `numbers.csv` beside this file lists, for each kind of run, each
version of its code and the version with the same numbers, which enters the identity. After a change with the
same numbers, according to `make golden`, run

    python -m seedbed.running.identity same "why"

After a change of numbers, write `new` instead of `same`: runs of earlier code are then trained again.
Unlisted code counts as itself.
"""

import argparse
import ast
import csv
import functools
import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from seedbed.core import files
from seedbed.core.methods import METHODS
from seedbed.core.tasks import TASKS
from seedbed.running import trainers

# packages whose version may change a number, besides those of each task and method
PACKAGES = ("torch", "fairseq", "transformers", "accelerate", "safetensors", "numpy")

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
LIBRARY = Path(__file__).parents[1]
NUMBERS = Path(__file__).with_name("numbers.csv")
# modules that may change a number of any run, by logical name, besides those of each trainer. Other imports
# of a trainer only handle files and processes.
SHARED = {
    "adapter_parameters": "training/adapter_parameters.py",
    "auto_classifiers": "models/auto_classifiers.py",
    "class_metrics": "core/class_metrics.py",
    "class_weights": "training/class_weights.py",
    "graphs": "training/graphs.py",
    "hardware": "training/hardware.py",
    "initialisation": "training/initialisation.py",
    "methods": "core/methods.py",
    "metrics": "training/metrics.py",
    "naming": "core/naming.py",
    "products": "training/products.py",
    "progress": "training/progress.py",
    "recipes": "core/recipes.py",
    "recording": "training/recording.py",
    "results": "training/results.py",
    "schedule": "training/schedule.py",
    "subsets": "core/subsets.py",
    "tasks": "core/tasks/metrics.py",
    "token_ids": "training/token_ids.py",
    "training_state": "training/training_state.py",
    "truncation": "core/truncation.py",
    "value_metrics": "core/value_metrics.py",
}
# fields of a task that may change a number; the others are words and files
TRAINED = ("name", "outputs", "metrics", "selection", "tie_break", "final")
ADAPTER = {
    "adapters": "training/adapters.py",
    "initial_models": "training/initial_models.py",
    "merging": "training/merging.py",
    "training_methods": "training/methods.py",
}
PART = {
    "partial": "training/partial.py",
    "states": "training/states.py",
    "states_file": "data/states.py",
}
# kinds of runs that are planned
KINDS = (
    "fairseq classification", "transformers classification", "transformers classification adapter",
    "transformers generation", "transformers generation adapter", "fused classification",
    "transformers multilabel", "transformers multilabel adapter",
    "fairseq regression", "transformers regression", "transformers regression adapter",
    "fairseq classification part", "transformers classification part", "transformers multilabel part",
    "fairseq regression part", "transformers regression part", "fused classification adapter",
)  # fmt: skip


def of(run: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """The identity of a run.

    Args:
        run: its params (`Plan.fairseq_run`, `Plan.transformers_run`).
        inputs: the SHA-256 of each input file, by names independent of the files' places.
    """
    kind = kind_of(run)
    versions = package_versions((*PACKAGES, *extra_packages(run["task"], run["method"])))
    return files.fingerprint({"run": run, "inputs": inputs, "versions": versions, "code": numbers_of(kind)})


def kind_of(run: Mapping[str, Any]) -> str:
    """One of `KINDS`."""
    method = METHODS[run["method"]]
    frozen = ["adapter"] * method.has_adapter + ["part"] * method.trains_part
    return " ".join((trainers.of(run).name, run["task"], *frozen))


def modules_of(kind: str) -> dict[str, str]:
    """The modules that may change a number of a kind of run: paths below the library by logical name."""
    trainer, task, *frozen = kind.split()
    of_frozen = {"adapter": ADAPTER, "part": PART}
    return SHARED | trainers.named(trainer, task).code | (of_frozen[frozen[0]] if frozen else {})


@functools.cache
def training_code(kind: str) -> str:
    """The SHA-256 of the meaning of a kind's training code, and of its task's measured fields."""
    task = TASKS[kind.split()[1]]
    digest = hashlib.sha256(repr([getattr(task, name) for name in TRAINED]).encode())
    for name, path in sorted(modules_of(kind).items()):
        source = (LIBRARY / path).read_text(encoding="utf-8")
        digest.update(f"{name}\0{meaning(source)}\0".encode())
    return digest.hexdigest()


@functools.cache
def numbers_of(kind: str) -> str:
    """The version of the code with the same numbers as the present code: the listed one, else itself."""
    code = training_code(kind)
    for row in _listed():
        if (row["kind"], row["code"]) == (kind, code):
            return row["numbers"]
    return code


def is_listed(kind: str) -> bool:
    """Whether `numbers.csv` lists the present code of a kind of run."""
    return any((row["kind"], row["code"]) == (kind, training_code(kind)) for row in _listed())


def meaning(source: str) -> str:
    """The syntax tree of Python code as text, without comments, layout, docstrings and packages of imports.

    The text is the same on all versions of Python that Seedbed supports: versions differ in fields without a
    value, so these are omitted.
    """
    tree = ast.parse(source)
    imported = {
        f"{alias.name.rpartition('.')[2]} as {alias.asname}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }
    return "".join([*sorted(imported), *_dump(tree)])


def _dump(node: Any) -> Iterator[str]:
    """The parts of the text of a syntax tree without docstrings and imports."""
    if isinstance(node, list):
        for item in node:
            yield from _dump(item)
            yield ","
    elif isinstance(node, ast.AST):
        yield f"{type(node).__name__}("
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                value = value[1:]
            if isinstance(value, list):  # the number of imports in a row depends on their packages
                value = [item for item in value if not isinstance(item, ast.ImportFrom | ast.Import)]
            if value is not None and value != []:
                yield f"{name}="
                yield from _dump(value)
                yield ";"
        yield ")"
    else:
        yield repr(node)


def extra_packages(task: str, method: str) -> tuple[str, ...]:
    """Further packages that may change a number of these runs."""
    return TASKS[task].packages + METHODS[method].packages


def package_versions(packages: Sequence[str] = PACKAGES) -> dict[str, str | None]:
    """Versions of Python and packages, by default all that may change a number; None if not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _listed() -> list[dict[str, str]]:
    """The rows of `numbers.csv`."""
    with open(NUMBERS, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def list_code(change: str, why: str) -> None:
    """List the present code of all unlisted kinds, with the `same` numbers as before or `new` ones."""
    rows = _listed()
    last = {row["kind"]: row["numbers"] for row in rows}
    for kind in KINDS:
        code = training_code(kind)
        if not is_listed(kind):
            # a kind without earlier code has no earlier numbers
            numbers = last.get(kind, code) if change == "same" else code
            rows.append({"kind": kind, "code": code, "numbers": numbers, "why": why})
            print(f"{kind}: {change} numbers")
    files.write_rows(NUMBERS, list(rows[0]), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="List the present training code in numbers.csv.")
    parser.add_argument("change", choices=["same", "new"], help="its numbers, compared with the last code")
    parser.add_argument("why", help="the change, in a few words")
    arguments = parser.parse_args()
    list_code(arguments.change, arguments.why)
