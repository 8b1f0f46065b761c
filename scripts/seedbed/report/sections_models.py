"""Sections of summary and report: the frameworks, the models and what the recipe is called in each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seedbed.core.rows import Row
from seedbed.core.tasks import DEFAULT, TASKS, Task, task_of
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, key_text, short_number
from seedbed.report import flags
from seedbed.report.documents.blocks import Block, Bullets, Code, Details, Heading, Paragraph, Table
from seedbed.report.parts import (
    MAX_LISTED,
    capped,
    cell_word,
    counted_cell,
    header,
    headers,
    heading,
    heading_text,
    number_cell,
    place_text,
)

WORDS = Words("report/models")

MAX_FAMILIES = 5  # recipes whose flags are shown
MAX_ARCHITECTURES = 12


def framework_section(
    documents: Sequence[Row],
    recipes: Mapping[str, Mapping[str, Any]],
    left_out: Mapping[str, Sequence[str]] | None = None,
    task: Task = TASKS[DEFAULT],
) -> list[Block]:
    """Where a framework departs from the recipe or from the other: the union over all runs.

    Args:
        documents: run.json of every run.
        recipes: `Plan.reporting()["recipes"]`.
        left_out: frameworks of the grid that cannot train a model, by model.
        task: what they are trained for.
    """
    asked: dict[str, dict[str, None]] = {}
    done: dict[str, dict[str, dict[str, None]]] = {}
    for document in documents:
        run = document["run"]
        for item in document["differences"]:
            setting = str(item["setting"])
            value = _text(item["asked"]) or _text(recipes[run["recipe"]].get(setting))
            asked.setdefault(setting, {})[value] = None
            told = done.setdefault(setting, {}).setdefault(run["framework"], {})
            told[_text(item["done"])] = None
    frameworks = list(dict.fromkeys(document["run"]["framework"] for document in documents))
    several = len(frameworks) > 1
    begin: list[Block] = [heading("departures_of_several" if several else "departures")]
    if left_out:
        begin.append(Bullets([_left_out(model, names, task) for model, names in left_out.items()]))
    if not done:
        return [*begin, Paragraph(WORDS.say("nothing_differs"))]
    body = [
        [
            key_text(setting),
            "; ".join(filter(None, asked[setting])) or None,
            *("; ".join(told.get(name, [cell_word("as_asked")])) for name in frameworks),
        ]
        for setting, told in done.items()
    ]
    by = (header("departures", "done", framework=framework_name(name)) for name in frameworks)
    columns = [*headers("departures", "setting", "asked"), *by]
    table = Table("differences", columns, body, WORDS.say("departures_caption"))
    return [*begin, *capped(table, "settings", "run.json")]


def _left_out(model: str, names: Sequence[str], task: Task) -> str:
    untrained = set(names) - set(task.frameworks)
    return WORDS.say("left_out", model, names, task.name if untrained else "")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else short_number(value)


def parity_section(parity: Sequence[tuple[str, str, Row]]) -> list[Block]:
    """Whether the converted model is the same model in both frameworks; left out where it is in one."""
    if not parity:
        return []
    lines = [
        WORDS.say(
            "parity",
            place_text(dataset, model),
            found,
            _size(found["largest_difference"]),
            _size(found["tolerance"]),
        )
        for dataset, model, found in parity
    ]
    return [heading("parity"), Bullets(lines)]


def _size(number: float) -> str:
    return short_number(float(f"{number:.1e}"))


# --- parameters ---------------------------------------------------------------------------------------------


def _parameter_table(model: str, rows: Sequence[Row], number: int) -> Table:
    """Expected and counted parameters of a model, component by component."""
    caption = WORDS.say("parameter_caption", model)
    if not any(row["formula"] for row in rows):
        counted = [(row["component"], counted_cell(row)) for row in rows]
        columns = headers("parameters", "component", "counted")
        return Table(f"parameters_{number}", columns, counted, caption, right=(1,))
    columns = headers("parameters", "component", "formula", "expected", "counted")
    body = [
        (row["component"], row["formula"] or None, number_cell(row["expected"]), counted_cell(row))
        for row in rows
    ]
    return Table(f"parameters_{number}", columns, body, caption, right=(2, 3))


def parameter_section(
    parameters: Mapping[str, Sequence[Row]], models: Mapping[str, Row] | None = None
) -> list[Block]:
    """Numbers of parameters, with the closed formula worked through for every RoBERTa.

    Args:
        parameters: rows of parameters.csv, by model.
        models: content of model.json, by model; without it the formula is not worked through.
    """
    if not parameters:
        return []
    has_formula = {model: any(row["formula"] for row in rows) for model, rows in parameters.items()}
    blocks: list[Block] = [heading("parameters")]
    blocks += [Paragraph(WORDS.say("parameter_note"))] if any(has_formula.values()) else []
    blocks += [Paragraph(WORDS.say("counted_note"))] if not all(has_formula.values()) else []
    for number, (model, rows) in enumerate(parameters.items(), start=1):
        if number > MAX_LISTED:
            left_out = len(parameters) - MAX_LISTED
            blocks.append(Paragraph(WORDS.say("parameters_left_out", left_out)))
            break
        if models is not None:
            blocks.append(Heading(model, 3))
            blocks += [Code(worked_formula(models[model]))] if has_formula[model] else []
        blocks.append(_parameter_table(model, rows, number))
    return blocks


def worked_formula(model: Mapping[str, Any]) -> str:
    """The number of parameters of a RoBERTa without a head, from its formula to the number, step by step.

    Args:
        model: content of model.json.
    """
    n, d, f = model["layers"], model["embed_dim"], model["ffn_dim"]
    v, t = model["vocabulary"], model["max_positions"]
    layer = [4 * d * d, 2 * d * f, 9 * d, f]
    outside = [d * v, d * (t + 2), 2 * d]
    added = " + ".join(f"{number:,}" for number in outside)
    lines = [
        "  N(4d² + 2df + 9d + f) + dV + d(T + 2) + 2d",
        f"= {n} × (4·{d}² + 2·{d}·{f} + 9·{d} + {f}) + {d}·{v:,} + {d}·({t} + 2) + 2·{d}",
        f"= {n} × ({' + '.join(f'{number:,}' for number in layer)}) + {added}",
        f"= {n} × {sum(layer):,} + {added}",
        f"= {n * sum(layer):,} + {added}",
        f"= {n * sum(layer) + sum(outside):,}",
    ]
    return f"N = {n}, d = {d}, f = {f}, V = {v:,}, T = {t}\n\n" + "\n".join(lines)


# --- architecture and recipe --------------------------------------------------------------------------------


def architecture_section(architectures: Mapping[tuple[str, str], str]) -> list[Block]:
    """Each model as each framework prints it; left out where nobody printed it."""
    if not architectures:
        return []
    shown = list(architectures.items())[:MAX_ARCHITECTURES]
    blocks: list[Block] = [heading("architecture")]
    blocks += [
        Details(WORDS.say("architecture_title", model, framework), [Code(text)])
        for (model, framework), text in shown
    ]
    if len(architectures) > MAX_ARCHITECTURES:
        left_out = len(architectures) - MAX_ARCHITECTURES
        blocks.append(Paragraph(WORDS.say("architectures_left_out", left_out)))
    return blocks


def flag_section(reporting: Mapping[str, Any]) -> list[Block]:
    """The recipes option by option; of a task that two frameworks train with the names
    of each."""
    families: dict[str, list[str]] = {}
    for name, block in reporting["recipes"].items():
        families.setdefault(block["family"], []).append(name)
    named = len(task_of(reporting).frameworks) > 1
    blocks: list[Block] = [heading("options" if named else "recipes")]
    for number, (family, members) in enumerate(families.items(), start=1):
        if number > MAX_FAMILIES:
            blocks.append(Paragraph(WORDS.say("recipes_left_out", len(families) - MAX_FAMILIES)))
            break
        named_as = WORDS.say("recipe_title", family, len(members))
        table = flags.table(reporting["recipes"][members[0]], named=named)
        blocks += [Heading(named_as, 3), replace(table, name=f"{table.name}_{number}")]
    keys = {key for block in reporting["recipes"].values() for key in block}
    return [*blocks, Details(heading_text("meanings"), [flags.meanings(keys, named=named)])]
