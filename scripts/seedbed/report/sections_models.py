"""Sections of summary and report: the frameworks, the models and what the recipe is called in each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seedbed.core.rows import Row
from seedbed.core.tasks import task_of
from seedbed.core.words import count, framework_name, key_text, short_number
from seedbed.report import flags
from seedbed.report.documents.blocks import Block, Bullets, Code, Details, Heading, Paragraph, Table
from seedbed.report.parts import MAX_LISTED, capped, counted_cell, number_cell, place_text

MAX_FAMILIES = 5  # recipes whose flags are shown
MAX_ARCHITECTURES = 12


def framework_section(documents: Sequence[Row], recipes: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """Where a framework departs from the recipe or from the other: the union over all runs.

    Args:
        documents: run.json of every run.
        recipes: `Plan.reporting()["recipes"]`.
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
    title = "What still differs between the frameworks" if several else "Departures from the recipe"
    if not done:
        return [Heading(title), Paragraph("Nothing that the trainers know of.")]
    body = [
        [
            key_text(setting),
            "; ".join(filter(None, asked[setting])) or None,
            *("; ".join(told.get(name, ["as asked"])) for name in frameworks),
        ]
        for setting, told in done.items()
    ]
    header = ["setting", "asked", *(f"done by {framework_name(name)}" for name in frameworks)]
    table = Table("differences", header, body, "Settings that a framework cannot honour as the recipe asks.")
    return [Heading(title), *capped(table, "settings", "run.json of each run")]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else short_number(value)


def parity_section(parity: Sequence[tuple[str, str, Row]]) -> list[Block]:
    """Whether the converted model is the same model in both frameworks; left out where it is in one."""
    if not parity:
        return []
    lines = []
    for dataset, model, found in parity:
        ids = "are equal" if found["token_ids_equal"] else "DIFFER"
        lines.append(
            f"{place_text(dataset, model)}: the token ids of {found['texts']:,} texts {ids}; "
            f"on {found['compared']:,} of them hidden states differ by {_size(found['largest_difference'])} "
            f"at most (tolerance {_size(found['tolerance'])}){_masked_lm(found.get('masked_lm'))}."
        )
    return [Heading("Is the converted model the same model?"), Bullets(lines)]


def _size(number: float) -> str:
    return short_number(float(f"{number:.1e}"))


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


# --- parameters ---------------------------------------------------------------------------------------------


def _parameter_table(model: str, rows: Sequence[Row], number: int) -> Table:
    """Expected and counted parameters of a model, component by component."""
    header = ["component", "formula", "expected", "counted"]
    body = [
        (row["component"], row["formula"] or None, number_cell(row["expected"]), counted_cell(row))
        for row in rows
    ]
    return Table(f"parameters_{number}", header, body, f"Parameters of {model}.", right=(2, 3))


def parameter_section(
    parameters: Mapping[str, Sequence[Row]], models: Mapping[str, Row] | None = None
) -> list[Block]:
    """Numbers of parameters, with the closed formula worked through for every model.

    Args:
        parameters: rows of parameters.csv, by model.
        models: content of model.json, by model; without it the formula is not worked through.
    """
    if not parameters:
        return []
    blocks: list[Block] = [
        Heading("Parameters"),
        Paragraph(
            "N layers, width d, feed-forward width f, V rows of the token embedding, T positions; the two "
            "more rows of the position embedding come from fairseq's numbering. Expected: by the formula; "
            "counted: from the weights themselves. No head is in the total."
        ),
    ]
    for number, (model, rows) in enumerate(parameters.items(), start=1):
        if number > MAX_LISTED:
            left_out = len(parameters) - MAX_LISTED
            blocks.append(Paragraph(f"{left_out:,} more models: parameters.csv of their folders."))
            break
        if models is not None:
            blocks += [Heading(model, 3), Code(worked_formula(models[model]))]
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
    blocks: list[Block] = [Heading("Architecture")]
    blocks += [
        Details(f"{model}, as {framework_name(framework)} prints it", [Code(text)])
        for (model, framework), text in shown
    ]
    if len(architectures) > MAX_ARCHITECTURES:
        left_out = len(architectures) - MAX_ARCHITECTURES
        blocks.append(Paragraph(f"{left_out:,} more lie in the folders of the models."))
    return blocks


def flag_section(reporting: Mapping[str, Any]) -> list[Block]:
    """The recipes option by option; of classification, which two frameworks train, with the names of each."""
    families: dict[str, list[str]] = {}
    for name, block in reporting["recipes"].items():
        families.setdefault(block["family"], []).append(name)
    named = task_of(reporting).name == "classification"
    blocks: list[Block] = [Heading("The recipes")]
    if named:
        blocks = [
            Heading("The recipe, and what both frameworks call its options"),
            Paragraph(
                "Each option drives both frameworks. Beside it the flag of fairseq and that of run_glue.py, "
                "for those who want to repeat a run without Seedbed."
            ),
        ]
    for number, (family, members) in enumerate(families.items(), start=1):
        if number > MAX_FAMILIES:
            blocks.append(Paragraph(f"{len(families) - MAX_FAMILIES:,} more stand in the config below."))
            break
        title = family if len(members) == 1 else f"{family}, the first of its {count(len(members), 'recipe')}"
        table = flags.table(reporting["recipes"][members[0]], named=named)
        blocks += [Heading(title, 3), replace(table, name=f"{table.name}_{number}")]
    return [*blocks, Details("What the options mean, with their defaults", [flags.meanings(named=named)])]
