"""What summary and report read beside the tables of a made-up experiment; both as written from it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from synthetic import ADAPTED, TOTAL, Synthetic, make_experiment

from seedbed.analysis.experiment import Experiment
from seedbed.config import plan
from seedbed.core import files, wording
from seedbed.core.rows import read_table
from seedbed.figures import registry
from seedbed.figures.base import Data
from seedbed.figures.captions import Caption
from seedbed.report import report, sources, summary
from seedbed.report.documents.blocks import Heading
from seedbed.report.documents.markdown import to_markdown

MODEL = {"layers": 4, "embed_dim": 512, "ffn_dim": 512, "vocabulary": 32_000, "max_positions": 256}
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:dc="http://purl.org/dc/elements/1.1/" width="9" '
    'height="9"><metadata><dc:description>{}</dc:description></metadata></svg>'
)


def experiment_of(made: Synthetic) -> Experiment:
    """An experiment whose tables are made."""
    return read(made)[0]


def read(made: Synthetic, captions: dict[str, Caption] | None = None) -> tuple[Experiment, sources.Sources]:
    """The same, and what summary and report read beside it."""
    known = made.plan
    inputs = {
        **made.outputs,
        "audit": made.experiment / "data_audit.csv",
        "run_json": known.run_files("run.json"),
        "parity": known.only("encoder", known.per_pair("parity.json")),
        "parameters": known.only("encoder", known.per_model("parameters.csv")),
        "trainable": [path for path in known.trainable_table if Path(path).exists()],
    }
    figures = dict.fromkeys([*registry.names_for(known), "data_audit"], Caption(""))
    return sources.read(inputs, known.reporting(), {**figures, **(captions or {})}, Experiment)


def data_of(made: Synthetic) -> Data:
    """What the figures of an experiment whose tables are made are drawn from."""
    own = {*registry.COMMON, "contrasts"}
    tables = [name for name in registry.TABLES if name in made.outputs and name not in own]
    return Data.read(made.outputs, made.plan.reporting(), tables)


def aggregate(made: Synthetic) -> None:
    """Make the tables, with few replicates: nothing here depends on their number."""
    made.plan.config["statistics"]["replicates"] = 200
    made.aggregate()


def make_summary(folder: Path, **options: Any) -> str:
    """The summary of an experiment as `make_experiment` makes it."""
    return write_summary(make_experiment(folder, **options))


def write_summary(made: Synthetic, captions: dict[str, Caption] | None = None) -> str:
    """Make the tables and summary.md; the text of the latter."""
    aggregate(made)
    path = made.experiment / "summary.md"
    summary.write_summary(*read(made, captions), path, path.with_suffix(".json"))
    return path.read_text(encoding="utf-8")


def make_whole(folder: Path, **options: Any) -> str:
    """What the report says of an experiment as `make_experiment` makes it, as Markdown."""
    return write_whole(make_experiment(folder, **options))


def write_whole(made: Synthetic) -> str:
    """Make the tables; what the report says, as Markdown."""
    with mock.patch.object(report, "to_page", return_value="") as page:
        write_report(made)
    (title, blocks, *_), more = page.call_args
    return to_markdown([Heading(title, 1), *more["lead"], *more["first"], *blocks])


def draw_nothing(made: Synthetic) -> list[Path]:
    """An empty picture in place of every figure."""
    names = [*registry.names_for(made.plan), "data_audit"]
    paths = [made.experiment / "figures" / f"{name}.svg" for name in names]
    for path in paths:
        files.write_text(path, SVG.format(f"Caption of {path.stem}."))
    return paths


def example(number: int) -> dict[str, Any]:
    """A made-up test example of classification."""
    return {"id": f"test-{number}", "text": f"Text <b>{number}</b> of `many`.\n" * 30, "label": number % 2}


def question(number: int) -> dict[str, Any]:
    """A made-up test example of generation, as `make_generation` has its answers."""
    asked = f"Qu'est-ce que <b>{number}</b> et `{number}` ?"
    prompt = f"Question : {asked}\nRéponse :"
    answer = f"Réponse {number % 23}, la bonne"
    return {"id": f"test-{number}", "text": prompt, "question": asked, "context": None, "answer": answer}


def write_trainable(made: Synthetic) -> None:
    """trainable_parameters.csv of a made-up experiment with adapters: two layers of width 512 and rank 16."""
    rows = []
    for model in made.plan.config["grid"]["models"]:
        for recipe, settings in made.plan.freezing.items():
            names = {"model": model, "recipe": recipe, "method": settings["method"]}
            parts = [
                ("query_key_value", 5, "5 x r(d_in + d_out) = 5 x 16 x (512 + 1536)", ADAPTED),
                ("trainable", None, "sum of the rows above", ADAPTED),
                ("total", None, f"{TOTAL} of the model + {ADAPTED} added", TOTAL + ADAPTED),
            ]
            if settings["method"] == "qlora":
                parts.append(("total, packed 4-bit storage counted (wrong)", None, "", TOTAL // 2))
            rows += [
                {**names, "component": name, "modules": modules, "formula": formula}
                | {"expected": number, "counted": number}
                for name, modules, formula, number in parts
            ]
    files.write_rows(made.experiment / "trainable_parameters.csv", list(rows[0]), rows)


def write_extras(made: Synthetic) -> dict[str, list[str]]:
    """Texts, models and architectures of a made-up experiment."""
    known = made.plan
    for path in known.per_dataset("test.jsonl"):
        size = max(run["test_examples"] for run in read_table(made.outputs["runs"]))
        make = question if known.task.writes_answers else example
        files.write_jsonl(path, [make(k) for k in range(size)])
    for path in known.per_model("model.json"):
        files.write_json(path, MODEL)
    printed = known.only("encoder", ["transformers", "fairseq"])
    names = [f"architecture_{framework}.txt" for framework in printed]
    architectures = [path for name in names for path in known.per_model(name)]
    for path in architectures:
        files.write_text(path, f"Model(\n  ({Path(path).stem})\n)\n")
    return {
        "models": known.per_model("model.json"),
        "architectures": architectures,
        "texts": known.per_dataset("test.jsonl"),
    }


def write_report(made: Synthetic) -> str:
    """Make the tables and report.html; the text of the latter."""
    aggregate(made)
    drawn = draw_nothing(made)
    captions = {path.stem: Caption(f"Caption of {path.stem}.", f"Details of {path.stem}.") for path in drawn}
    path = made.experiment / "report.html"
    config = plan.canonical(made.plan.config)
    report.write_report(*read(made, captions), **write_extras(made), config=config, figures=drawn, path=path)
    return path.read_text(encoding="utf-8")


def asked(make: Callable[[], object]) -> dict[str, list[tuple[Any, ...]]]:
    """What templates are asked to word while `make` runs: the values of each call, by template and macro.

    What they say of them is approved, see tests/golden/branches.py.
    """
    calls: dict[str, list[tuple[Any, ...]]] = {}
    render = wording.Words._render

    def listen(words: wording.Words, macro: str, values: tuple[Any, ...], more: dict[str, Any]) -> str:
        calls.setdefault(f"{Path(words.path).stem}.{macro}", []).append((*values, *more.values()))
        return render(words, macro, values, more)

    with mock.patch.object(wording.Words, "_render", listen):
        make()
    return calls
