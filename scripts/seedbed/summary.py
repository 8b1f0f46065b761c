"""summary.md: the answer of an experiment and the tables behind it, for a reader who opens nothing else.

Accuracies are percentages with their sign, differences are in points; test and validation are always named.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from seedbed import statistics
from seedbed.answer import Experiment, Question, answer, planning, questions
from seedbed.audit import read_audit
from seedbed.audit import warnings as audit_warnings
from seedbed.files import read_json, write_text
from seedbed.tables import SECONDS, TEST_SETS, Row, grouped, on_test_set, read_table
from seedbed.words import (
    NOTHING,
    count,
    join,
    markdown_table,
    p_text,
    percent,
    percent_range,
    percent_sd,
    points,
    points_range,
)

MAX_LISTED = 20
FIGURES = {
    "data_audit": "The data: token lengths, classes, duplicates and leaks",
    "test_accuracy": "Test accuracy of the selected checkpoints",
    "test_accuracy_by_recipe": "Test accuracy over the swept values",
    "validation_accuracy": "Validation accuracy while training",
    "test_curves": "Test accuracy while training (it selects nothing)",
}
FILES = {
    "runs.csv": "one row a run",
    "data_audit.csv": "what was looked for in the data, with counts, shares and examples",
    "curves.csv": "the metrics of all runs while training",
    "summary.csv": "one row for each group of seeds",
    "contrasts.csv": "differences with intervals and exact tests",
    "runs/": "predictions, metrics and description of every run; `tensorboard --logdir` reads it",
}
GROUP = ("dataset", "model")


def write_summary(
    tables: Mapping[str, str | Path],
    audit: str | Path,
    run_files: Sequence[str | Path],
    parity: Sequence[str | Path],
    parameters: Sequence[str | Path],
    reporting: Mapping[str, Any],
    figures: Sequence[str],
    path: str | Path,
) -> None:
    """Write the summary of an experiment as Markdown.

    Args:
        tables: paths of runs, summary and contrasts.
        audit: data_audit.csv of the experiment.
        run_files: run.json of every run.
        parity: parity.json of every dataset and model, .../DATASET/MODEL/parity.json.
        parameters: parameters.csv of every model, .../MODEL/parameters.csv.
        reporting: `Plan.reporting()`.
        figures: names of the figures, which lie in figures/ beside the summary.
        path: the file to write.
    """
    runs, summary, contrasts = (read_table(tables[name]) for name in ("runs", "summary", "contrasts"))
    experiment, without_leaks = (
        Experiment(runs, on_test_set(summary, test_set), on_test_set(contrasts, test_set), reporting)
        for test_set in TEST_SETS
    )
    documents = [read_json(file) for file in run_files]
    sections = [
        f"# Does pretraining help? Experiment {reporting['experiment']}",
        *answer(experiment),
        *accuracy_section(experiment),
        *leak_section(experiment, without_leaks),
        *warning_section(experiment),
        *data_section(read_audit(audit)),
        *difference_section(experiment),
        *sweep_section(experiment),
        *figure_section(figures),
        *framework_section(documents),
        *model_section(parity, parameters),
        *time_section(experiment),
        *environment_section(documents),
        *file_section(),
    ]
    write_text(path, "\n\n".join(sections) + "\n")


# --- accuracies ---------------------------------------------------------------------------------------------


def accuracy_section(experiment: Experiment) -> list[str]:
    """Test accuracy of every group of seeds; of swept families the reference and the best recipe."""
    parts = ["## Test accuracy"]
    places = grouped(_headline_rows(experiment), *GROUP)
    for place, rows in places.items():
        if len(places) > 1:
            parts.append(f"### {_place(*place)}")
        parts += [_baselines(experiment, rows), _accuracy_table(experiment, rows)]
    parts.append(
        "Mean ± sample standard deviation over seeds of the checkpoint that is best on validation; the "
        "interval is Student's t over seeds, cut at 0% and 100%. It does not cover the choice of test "
        "examples. † collapsed, ‡ not above the majority class."
    )
    return parts


def _headline_rows(experiment: Experiment) -> list[Row]:
    rows = []
    for question in questions(experiment):
        for row in experiment.summary:
            if (row["dataset"], row["model"], row["recipe_family"]) != (
                question.dataset,
                question.model,
                question.family,
            ):
                continue
            if row["selection"] == "best" or row["recipe"] == question.reference:
                rows.append(row)
    return rows


def _baselines(experiment: Experiment, rows: Sequence[Row]) -> str:
    bag, majority = rows[0]["bag_of_words"], rows[0]["majority_share"]
    examples = experiment.group(rows[0])[0]["test_examples"]
    below = sum(row["mean"] < bag for row in rows)
    verdict = {0: "below every mean of the table", len(rows): "above every mean of the table"}.get(
        below, f"above {below} of the {len(rows)} means of the table"
    )
    error = 100 * max(row["binomial_se"] for row in rows)
    return (
        f"To beat, on the {examples:,} test examples: the majority class with {percent(majority)}, and a bag "
        f"of words with {percent(bag)}, which is {verdict}. So many examples give each accuracy a binomial "
        f"standard error of up to {error:.1f} points."
    )


def _accuracy_table(experiment: Experiment, rows: Sequence[Row]) -> str:
    header = ["framework", "init", "recipe", "test accuracy", experiment.level, "every seed", "collapsed"]
    header += ["without collapsed", "validation accuracy"]
    body = [
        (
            row["framework"],
            row["init"],
            _recipe(row, rows),
            f"{percent_sd(row['mean'], row['sd'])} (n = {row['n_seeds']})",
            percent_range(row["ci_low"], row["ci_high"]),
            ", ".join(_seed_cell(run, row["metric"]) for run in experiment.group(row)),
            f"{row['n_collapsed']} of {row['n_seeds']}",
            percent_sd(row["mean_without_collapsed"], row["sd_without_collapsed"])
            if row["n_collapsed"]
            else NOTHING,
            percent_sd(row["validation_mean"], row["validation_sd"]),
        )
        for row in rows
    ]
    return markdown_table(header, body)


def _recipe(row: Row, rows: Sequence[Row]) -> str:
    """The recipe, and where a family is swept how it was chosen."""
    swept = {other["recipe_family"] for other in rows if other["selection"] == "best"}
    if row["recipe_family"] not in swept:
        return row["recipe"]
    return f"{row['recipe']} ({'best on validation' if row['selection'] == 'best' else 'equal'})"


def _seed_cell(run: Row, metric: str) -> str:
    mark = "†" if run["collapsed"] else "‡" if run["not_above_majority"] else ""
    return percent(run[f"test_{metric}"]) + mark


# --- the data -----------------------------------------------------------------------------------------------


def leak_section(experiment: Experiment, without_leaks: Experiment) -> list[str]:
    """Test accuracy and differences with and without the leaked test examples; left out where none leaked."""
    places = grouped(_headline_rows(without_leaks), *GROUP)
    leaked = {run["dataset"]: run for run in experiment.runs if run["leaked_test_examples"]}
    if not leaked:
        return []
    parts = [
        "## With and without leaked test examples",
        "A test example leaked if its text, or a near-duplicate of it, stands in training or validation. The "
        "whole test split is the one that others report; the smaller one asks the question that was meant.",
    ]
    parts += [_leak_sentence(experiment, run) for run in leaked.values()]
    several = len(grouped(experiment.summary, *GROUP)) > 1
    for place, rows in places.items():
        if several:
            parts.append(f"### {_place(*place)}")
        parts.append(_leak_table(experiment, rows))
        differences = _leak_differences(experiment, without_leaks, place)
        parts += [differences] if differences else []
    return parts


def _leak_sentence(experiment: Experiment, run: Row) -> str:
    leaked, tested = run["leaked_test_examples"], run["test_examples"]
    dropped = experiment.reporting["datasets"][run["dataset"]]["drop_leaks"]
    trained = "was left out of training (drop_leaks)" if dropped else "was trained on"
    told = (
        f"{run['dataset']}: {count(leaked, 'test example')} of {tested:,} leaked; what resembles them in the "
        f"training split {trained}."
    )
    return told if leaked < tested else f"{told} So nothing is left to measure without leaks."


def _leak_table(experiment: Experiment, rows: Sequence[Row]) -> str:
    whole = {_group_key(row): row for row in experiment.summary}
    header = ["framework", "init", "recipe", "all test examples", "without leaks", "change"]
    body = [
        (
            row["framework"],
            row["init"],
            _recipe(row, rows),
            percent_sd(whole[_group_key(row)]["mean"], whole[_group_key(row)]["sd"]),
            percent_sd(row["mean"], row["sd"]),
            f"{points(row['mean'] - whole[_group_key(row)]['mean'])} points",
        )
        for row in rows
    ]
    return markdown_table(header, body)


def _group_key(row: Row) -> tuple[str, ...]:
    return tuple(row[key] for key in (*GROUP, "framework", "init", "recipe", "selection"))


def _leak_differences(experiment: Experiment, without_leaks: Experiment, place: tuple[str, str]) -> str:
    """One line a contrast of the inits: on all test examples, and without leaks."""
    lines = []
    for question in questions(without_leaks):
        if (question.dataset, question.model) != place:
            continue
        whole = Question(experiment, question.dataset, question.model, question.family).headline()
        for framework, row in question.headline().items():
            lines.append(
                f"- pretrained minus random with {framework}, {_contrast_recipe(row)}: "
                f"{_difference(whole[framework])} on all, {_difference(row)} without leaks"
            )
    return "\n".join(lines)


def _difference(row: Row) -> str:
    if row["ci_low"] is None:
        return f"{points(row['delta'])} points"
    return f"{points(row['delta'])} points ({points_range(row['ci_low'], row['ci_high'])})"


def data_section(audit: Sequence[Row]) -> list[str]:
    """What the audit of the data found that a reader should know."""
    told = audit_warnings(audit) or ["Nothing that calls for a warning."]
    told = [f"- {sentence}" for sentence in told]
    return ["## The data", "\n".join(told), "Every check with its counts stands in data_audit.csv."]


# --- warnings -----------------------------------------------------------------------------------------------


def warning_section(experiment: Experiment) -> list[str]:
    """Runs that collapsed or diverged, and runs that are not above the majority class, by name."""
    collapsed = [run for run in experiment.runs if run["collapsed"]]
    weak = [run for run in experiment.runs if run["not_above_majority"] and not run["collapsed"]]
    if not collapsed and not weak:
        return []
    level = f"{100 * experiment.confidence:.4g}%"
    parts = ["## Warnings"]
    if collapsed:
        parts += [
            f"{count(len(collapsed), 'run')} collapsed: one class is predicted throughout, or a loss became "
            "infinite or NaN. They count in the means above.",
            _listed(collapsed, _collapse_text),
        ]
    if weak:
        parts += [
            f"{count(len(weak), 'run')} cannot be told from the majority class: the one-sided {level} "
            "Wilson bound of the test accuracy does not exceed its share.",
            _listed(weak, _weakness_text),
        ]
    return parts


def _collapse_text(run: Row) -> str:
    why = "diverged" if run["diverged"] else "predicts one class"
    return f"{why}, test accuracy {percent(run['test_accuracy'])}"


def _weakness_text(run: Row) -> str:
    share = percent(run["test_majority_share"])
    return f"test accuracy {percent(run['test_accuracy'])}, majority class {share}"


def _listed(runs: Sequence[Row], text: Any) -> str:
    lines = [f"- `{_folder(run)}`: {text(run)}" for run in runs[:MAX_LISTED]]
    if len(runs) > MAX_LISTED:
        lines.append(f"- and {len(runs) - MAX_LISTED} more, in runs.csv")
    return "\n".join(lines)


def _folder(run: Row) -> str:
    seeds = run["init_seed"], run["data_seed"]
    seed = f"seed{seeds[0]}" if seeds[0] == seeds[1] else f"seed{seeds[0]}-{seeds[1]}"
    return "/".join([*(run[key] for key in ("dataset", "model", "framework", "init", "recipe")), seed])


# --- differences --------------------------------------------------------------------------------------------


def difference_section(experiment: Experiment) -> list[str]:
    """The contrasts, with what these seeds could detect; left out where there is none."""
    parts = []
    for family, title in (("init", "Pretrained minus random"), ("framework", "fairseq minus Transformers")):
        rows = [row for row in experiment.contrasts if row["family"] == family]
        if rows:
            parts += [f"## {title}, test accuracy", _contrast_table(experiment, rows)]
    if not parts:
        return []
    return [*parts, _contrast_note(experiment)]


def _contrast_table(experiment: Experiment, rows: Sequence[Row]) -> str:
    places = len({(row["dataset"], row["model"]) for row in rows}) > 1
    header = [*(["dataset, model"] if places else []), "within", "recipe", "difference", experiment.level]
    header += ["exact p", "p, Holm", "seeds to settle it", "detectable"]
    body = []
    for row in rows:
        needed, smallest = planning(experiment, row)
        body.append(
            [
                *([f"{row['dataset']}, {row['model']}"] if places else []),
                row["a"].split("/")[0 if row["family"] == "init" else 1],
                _contrast_recipe(row),
                f"{points(row['delta'])} points",
                points_range(row["ci_low"], row["ci_high"]),
                p_text(row["p_value"]),
                p_text(row["p_holm"]),
                NOTHING if smallest is None else f"{needed:,}" if needed else f"> {statistics.MAX_SEEDS:,}",
                NOTHING if smallest is None else f"{100 * smallest:.1f} points",
            ]
        )
    return markdown_table(header, body)


def _contrast_recipe(row: Row) -> str:
    if row["selection"] == "equal":
        return row["recipe_a"]
    return f"each its best on validation: {row['recipe_a']}, {row['recipe_b']}"


def _contrast_note(experiment: Experiment) -> str:
    rows = [row for row in experiment.contrasts if row["p_value"] is not None]
    told = (
        "Inits are compared seed by seed within a framework, where both see the same order of examples "
        "(paired t); the frameworks draw their orders differently and are compared as independent groups "
        "(Welch's t). p is the exact two-sided permutation test over seeds, Holm's correction runs over "
        "each of the two families. Seeds to settle it: seeds a side for a power of "
        f"{100 * experiment.power:.4g}% if the true difference is the one seen; detectable: the smallest "
        "difference with that power at the present seeds. "
    )
    floors = dict.fromkeys((row["n_a"], row["n_b"], row["paired"]) for row in rows)
    limits = [
        f"{p_text(statistics.smallest_p(n_a, n_b, paired=paired))} ({'paired' if paired else 'unpaired'}, "
        f"{n_a} and {n_b} seeds)"
        for n_a, n_b, paired in floors
    ]
    if limits:
        told += f"The smallest p that these numbers of seeds allow: {join(limits)}. "
    if any(row["selection"] == "best" for row in experiment.contrasts):
        told += "Where recipes were chosen on validation, interval and p do not carry that choice."
    return told.strip()


def sweep_section(experiment: Experiment) -> list[str]:
    """Test accuracy of every recipe of the swept families, with the ones chosen on validation marked."""
    parts = []
    for question in questions(experiment):
        if question.swept:
            title = f"### {_place(question.dataset, question.model)}, {question.family}"
            parts += [title, _sweep_table(experiment, question)]
    if not parts:
        return []
    note = (
        "Test accuracy, mean ± sd over seeds; in brackets the mean validation accuracy. Bold: best of its "
        "column on validation, whatever the test says. The equal recipe of the answer is the first of the "
        "sweep."
    )
    return ["## Sweep", note, *parts]


def _sweep_table(experiment: Experiment, question: Any) -> str:
    rows = [
        row
        for row in experiment.summary
        if (row["dataset"], row["model"], row["recipe_family"])
        == (question.dataset, question.model, question.family)
    ]
    columns = list(dict.fromkeys((row["framework"], row["init"]) for row in rows))
    cells = {
        (row["recipe"], row["framework"], row["init"]): row for row in rows if row["selection"] == "equal"
    }
    best = {(row["recipe"], row["framework"], row["init"]) for row in rows if row["selection"] == "best"}
    body = []
    for recipe in experiment.recipes(question.family):
        swept = experiment.reporting["recipes"][recipe]["swept"]
        line = [", ".join(f"{key} {_value(value)}" for key, value in swept.items())]
        for column in columns:
            cell = _sweep_cell(cells[(recipe, *column)])
            line.append(f"**{cell}**" if (recipe, *column) in best else cell)
        body.append(line)
    return markdown_table(["recipe", *(f"{framework}, {init}" for framework, init in columns)], body)


def _sweep_cell(row: Row) -> str:
    collapsed = f", {row['n_collapsed']} collapsed" if row["n_collapsed"] else ""
    return f"{percent_sd(row['mean'], row['sd'])} ({percent(row['validation_mean'])}{collapsed})"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- how it was done ----------------------------------------------------------------------------------------


def framework_section(documents: Sequence[Row]) -> list[str]:
    """Where a framework departs from the recipe or from the other: the union over all runs."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for document in documents:
        for item in document["differences"]:
            done = found.setdefault((str(item["setting"]), _text(item["asked"])), {})
            told = done.setdefault(document["run"]["framework"], [])
            if _text(item["done"]) not in told:
                told.append(_text(item["done"]))
    frameworks = list(dict.fromkeys(document["run"]["framework"] for document in documents))
    title = (
        "## What still differs between the frameworks"
        if len(frameworks) > 1
        else "## Departures from the recipe"
    )
    if not found:
        return [title, "Nothing that the trainers know of."]
    body = [
        [setting, asked or NOTHING, *("; ".join(done.get(name, ["as asked"])) for name in frameworks)]
        for (setting, asked), done in found.items()
    ]
    return [title, markdown_table(["setting", "asked", *(f"done by {name}" for name in frameworks)], body)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def model_section(parity: Sequence[str | Path], parameters: Sequence[str | Path]) -> list[str]:
    """Whether the converted model is the same model, and how many parameters it has."""
    lines = []
    for path in map(Path, parity):
        found = read_json(path)
        ids = "are equal" if found["token_ids_equal"] else "DIFFER"
        lines.append(
            f"- {_place(path.parts[-3], path.parts[-2])}: the token ids of {found['texts']:,} texts {ids}; "
            f"on {found['compared']:,} of them hidden states differ by {found['largest_difference']:.1e} at "
            f"most (tolerance {found['tolerance']:.0e}){_masked_lm(found.get('masked_lm'))}"
        )
    parts = ["## Is the converted model the same model?", "\n".join(lines), "## Parameters"]
    return [*parts, *(_parameter_table(read_table(path)) for path in parameters)]


def _masked_lm(found: Mapping[str, Any] | None) -> str:
    """Whether the pretrained model knows these tokens; nothing where it has no language-model head."""
    if found is None:
        return ""
    knows = found["loss"] < found["frequency_loss"]
    verdict = "" if knows else ": **these token ids mean nothing to this checkpoint**"
    return (
        f"; it predicts masked tokens with a loss of {found['loss']:.2f} nats, where guessing by frequency "
        f"has {found['frequency_loss']:.2f}{verdict}"
    )


def _parameter_table(rows: Sequence[Row]) -> str:
    header = ["model", "component", "formula", "expected", "counted"]
    body = [
        (row["model"], row["component"], row["formula"], _integer(row["expected"]), _counted(row))
        for row in rows
    ]
    return markdown_table(header, body, right=(3, 4))


def _integer(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else NOTHING if number is None else str(number)


def _counted(row: Row) -> str:
    differs = row["expected"] is not None and row["expected"] != row["counted"]
    return _integer(row["counted"]) + (" (differs)" if differs else "")


def time_section(experiment: Experiment) -> list[str]:
    """Median seconds a run by framework, where they went, and on what device."""
    header = ["dataset, model", "framework", "runs", "start-up", "training", "evaluation", "writing", "total"]
    header += ["examples a second", "peak memory", "device"]
    body = []
    for (dataset, model, framework, device), runs in grouped(
        experiment.runs, *GROUP, "framework", "device"
    ).items():
        medians = [_median(run[f"{part}_seconds"] for run in runs) for part in SECONDS]
        body.append(
            [
                f"{dataset}, {model}",
                framework,
                len(runs),
                *(NOTHING if value is None else f"{value:,.1f} s" for value in medians),
                _number(_median(run["samples_per_second"] for run in runs), ""),
                _number(_median(run["peak_memory_mib"] for run in runs), " MiB"),
                device,
            ]
        )
    return ["## Time", markdown_table(header, body, right=range(2, 10)), "Medians over runs."]


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _number(value: float | None, unit: str) -> str:
    return NOTHING if value is None else f"{value:,.0f}{unit}"


def environment_section(documents: Sequence[Row]) -> list[str]:
    """Versions of packages, and the commit of the workflow; all of them where runs differ."""
    versions: dict[str, dict[str, None]] = {}
    for document in documents:
        for package, version in document["versions"].items():
            versions.setdefault(package, {})[version or "not installed"] = None
    lines = [f"{package} {' and '.join(found)}" for package, found in versions.items()]
    mixed = [package for package, found in versions.items() if len(found) > 1]
    parts = ["## Versions", f"{', '.join(lines)}."]
    commits = list(dict.fromkeys(document["git_commit"] for document in documents if document["git_commit"]))
    if commits:
        parts.append(f"Workflow at {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}.")
    if mixed or len(commits) > 1:
        parts.append("Not all runs were made with the same versions: run.json of each run tells its own.")
    return parts


def figure_section(figures: Sequence[str]) -> list[str]:
    """The figures, inline; each exists as SVG and as PNG."""
    images = [f"![{FIGURES.get(name, name)}](figures/{name}.svg)" for name in figures]
    return ["## Figures", *images, "Each lies in figures/ as SVG and PNG."]


def file_section() -> list[str]:
    """What lies beside the summary."""
    return [
        "## Files beside this one",
        "\n".join(f"- [{name}]({name}): {text}" for name, text in FILES.items()),
    ]


def _place(dataset: str, model: str) -> str:
    return f"{dataset}, {model}"
