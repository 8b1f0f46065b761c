"""Where the numbers come from: settings, versions, hardware, seeds, time and energy, as document blocks.

No section holds a date: the same runs make the same files.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.records import SECONDS, trained_together
from seedbed.analysis.table_rows import RunRow
from seedbed.core.files import write_text
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, join
from seedbed.report.documents.blocks import Block, Bullets, Code, Details, Paragraph, Table
from seedbed.report.parts import (
    MAX_LISTED,
    PLACE,
    capped,
    cell_word,
    figures,
    headers,
    heading,
    heading_text,
    number_cell,
    with_places,
)
from seedbed.report.sources import Sources

WORDS = Words("report/provenance")
JOULES_PER_KWH = 3_600_000
SECONDS_PER_HOUR = 3600
MACHINE = ("results", "mirror", "lock")  # keys of the configuration that hold paths
GPU = "cuda"  # how `device` of a run begins


def provenance_section(experiment: Experiment, sources: Sources, config: Mapping[str, Any]) -> list[Block]:
    """Everything that someone needs to repeat the experiment, and what it cost.

    Args:
        experiment: its tables.
        sources: the other files that the report tells of.
        config: the resolved configuration.
    """
    return [
        heading("provenance"),
        Bullets(
            [
                _seed_text(experiment.runs),
                *fused_texts(sources.documents),
                *cost_texts(sources.documents),
            ]
        ),
        *time_section(experiment, sources, level=3),
        *version_section(sources.documents, sources.commit, level=3),
        *_hardware_section(sources.documents),
        heading("configuration", 3),
        Paragraph(WORDS.say("config_note", MACHINE)),
        Details(heading_text("resolved_config"), [Code(_yaml(used(config)))]),
    ]


def write_config(config: Mapping[str, Any], path: str | Path) -> None:
    """Write what an experiment uses of its resolved configuration as YAML, as the report shows it."""
    write_text(path, _yaml(used(config)))


def used(config: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved configuration without paths of the machine, and without the definitions that its grid does
    not use."""
    chosen = {key: value for key, value in config.items() if key not in MACHINE}
    for kind in ("datasets", "models", "recipes"):
        chosen[kind] = {name: config[kind][name] for name in config["grid"][kind]}
    sources = {block["source"] for kind in ("datasets", "models") for block in chosen[kind].values()}
    chosen["sources"] = {name: block for name, block in config["sources"].items() if name in sources}
    return chosen


def _yaml(config: Mapping[str, Any]) -> str:
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True, width=100)


def _plain(value: Any) -> Any:
    """The value with plain mappings and lists, whatever kind of them it has."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _seed_text(runs: Sequence[RunRow]) -> str:
    seeds = list(dict.fromkeys((run.init_seed, run.data_seed) for run in runs))
    apart = any(init != data for init, data in seeds)
    return WORDS.say("seeds", len(runs), apart, seeds[:MAX_LISTED], max(0, len(seeds) - MAX_LISTED))


def fused_texts(documents: Sequence[Row]) -> list[str]:
    """How seeds were trained together, in a sentence; none where every run was trained by itself."""
    sizes = {size for document in documents if (size := trained_together(document)) > 1}
    return [WORDS.say("fused", sizes)] if sizes else []


# --- cost ---------------------------------------------------------------------------------------------------


def cost_texts(documents: Sequence[Row]) -> list[str]:
    """Hours on GPUs and CPUs, and energy where a counter told it, in sentences."""
    gpu = [document for document in documents if document["device"].startswith(GPU)]
    cpu = [document for document in documents if not document["device"].startswith(GPU)]
    told = []
    if gpu:
        told.append(WORDS.say("gpu_hours", _hours(gpu), len(gpu)))
    if cpu:
        cores = sum(_own_seconds(document) * document["hardware"]["threads"] for document in cpu)
        told.append(WORDS.say("cpu_hours", _hours(cpu), len(cpu), cores / SECONDS_PER_HOUR))
    if fused_texts(documents):
        told.append(WORDS.say("fused_hours"))
    return [*told, _energy_text(documents)]


def _own_seconds(document: Row) -> float:
    return document["seconds"]["total"] / trained_together(document)


def _hours(documents: Iterable[Row]) -> float:
    return sum(map(_own_seconds, documents)) / SECONDS_PER_HOUR


def _energy_text(documents: Sequence[Row]) -> str:
    known = [
        document["energy_joules"] / trained_together(document)
        for document in documents
        if document["energy_joules"] is not None
    ]
    return WORDS.say("energy", sum(known) / JOULES_PER_KWH, len(known), len(documents))


def time_section(experiment: Experiment, sources: Sources, level: int = 2) -> list[Block]:
    """Median seconds a run by framework, where they went, and on what device."""
    # runs of different methods have no common median
    several = len({run.method for run in experiment.runs}) > 1
    keys = [*PLACE, "framework", *(["method"] if several else []), "device"]
    named = keys[len(PLACE) :]
    columns = headers("time", *named, "runs", *SECONDS, "all_runs", "speed", "memory")
    groups = grouped(experiment.runs, *keys)

    def line(row: RunRow) -> list[Any]:
        runs = groups[tuple(row[key] for key in keys)]
        return [
            *(framework_name(row[key]) for key in named),
            len(runs),
            *(number_cell(_median(run[f"{part}_seconds"] for run in runs), 1) for part in SECONDS),
            number_cell(
                sum(known(run.total_seconds) / run.trained_together for run in runs) / SECONDS_PER_HOUR, 2
            ),
            number_cell(_median(_together_per_second(run) for run in runs)),
            number_cell(_median(run.peak_memory_mib for run in runs)),
        ]

    firsts = [runs[0] for runs in groups.values()]
    fused = any(run.trained_together > 1 for run in experiment.runs)
    caption = WORDS.say("time_caption", fused, *_sharing(sources.documents))
    right = range(len(named), len(columns))
    table = with_places(firsts, "time", columns, line, right=right, named=len(named), caption=caption)
    return [
        heading("time", level),
        *capped(table, "rows", "runs.csv"),
        *figures(experiment, sources, "time"),
    ]


def _sharing(documents: Sequence[Row]) -> tuple[int, bool]:
    """The highest number of processes that were on a GPU at a time, and whether all shared it by MPS."""
    shared = [each["hardware"] for each in documents if each["hardware"].get("processes_on_gpu", 1) > 1]
    if not shared:
        return 1, False
    return max(each["processes_on_gpu"] for each in shared), all(each["mps"] for each in shared)


def _together_per_second(run: RunRow) -> float | None:
    """Examples a second of the process, whose seeds are trained on theirs at the same time."""
    speed = run.samples_per_second
    return None if speed is None else speed * run.trained_together


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


# --- versions and hardware ----------------------------------------------------------------------------------


def version_section(documents: Sequence[Row], commit: str | None, level: int = 2) -> list[Block]:
    """Versions of packages and commits of the workflow, all of them where runs differ.

    Args:
        documents: run.json of every run.
        commit: of the code that makes this document; None where it is not known.
        level: of the heading.
    """
    versions: dict[str, Counter[str]] = {}
    for document in documents:
        for package, version in document["versions"].items():
            versions.setdefault(package, Counter())[version or cell_word("not_installed")] += 1
    commits = dict.fromkeys(document["git_commit"] for document in documents)
    mixed = len(commits) > 1 or any(len(found) > 1 for found in versions.values())
    body = [(package, join(list(found))) for package, found in versions.items()]
    blocks: list[Block] = [
        heading("versions", level),
        Table("versions", headers("versions", "package", "version"), body, WORDS.say("versions_caption")),
    ]
    known = [of_run for of_run in commits if of_run]
    blocks.append(Paragraph(WORDS.say("commits", known, len(known) == len(commits), commit or "")))
    if mixed:
        blocks.append(Paragraph(WORDS.say("mixed")))
    return blocks


def _hardware_section(documents: Sequence[Row]) -> list[Block]:
    counts = Counter(_hardware(document) for document in documents)
    columns = headers("hardware", "device", "cpu", "cpus", "threads", "gpus", "cuda", "runs")
    body = [(*machine, number) for machine, number in counts.items()]
    table = Table("hardware", columns, body, WORDS.say("hardware_caption"), right=(2, 3, 6))
    return [heading("hardware", 3), *capped(table, "machines", "run.json")]


def _hardware(document: Row) -> tuple[Any, ...]:
    found = document["hardware"]
    gpus = Counter(found.get("gpus") or [])
    cards = ", ".join(f"{number} × {name}" for name, number in gpus.items()) or None
    return document["device"], found["cpu"], found["cpus"], found["threads"], cards, found.get("cuda")
