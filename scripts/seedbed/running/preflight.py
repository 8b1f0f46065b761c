"""Find errors before any job runs: missing sources, and files that sources lack.

The checks run while the Snakefile is read, also in a dry run. Only local paths are checked; the files behind
a URL are known when it was fetched.
"""

import fnmatch
import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from seedbed.config.plan import Plan
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.printable import Lines, one_line
from seedbed.core.recipes import refuse_bfloat16
from seedbed.core.run_folder import LEVELS
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds
from seedbed.core.words import count, framework_name, join
from seedbed.models import limits
from seedbed.running import command_line, gpus
from seedbed.sources import archives
from seedbed.sources.folders import files_below
from seedbed.sources.locations import candidates, file_name, local_path


class Held(NamedTuple):
    """The files of a source.

    Attributes:
        names: their paths inside the source, sorted.
        root: their folder; None if they are in an archive.
        where: the place, for messages.
    """

    names: list[str]
    root: Path | None
    where: str


def check(plan: Plan, arguments: Sequence[str] | None = None, is_module: bool = False) -> list[str]:
    """Refuse an experiment that cannot succeed with the present files.

    A source that was fetched may be missing at its location, as may the source of a prepared dataset.

    Args:
        plan: the experiment's.
        arguments: the command line; by default this process's.
        is_module: whether another workflow uses this one, and may still make missing sources.

    Returns remarks for users, in sentences.

    Raises:
        SeedbedError: a local source or the mirror does not exist; a source lacks a file of a dataset or
            model; a recipe or dataset exceeds the limits of a converted model; fairseq would train in
            bfloat16 on a GPU of this host; or a target belongs to a run outside the grid.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if command_line.plans_nothing(arguments):
        return []
    for word in arguments:
        _check_target(plan, word)
    users = _users(plan)
    missing = [
        name
        for name, blocks in users.items()
        if not plan.is_current("sources", name) and not all(plan.is_current(*block) for block in blocks)
    ]
    _check_mirror(plan, missing)
    for name in users:
        place = _first_place(plan, name)
        if name in missing and place == () and not is_module:
            raise _not_there(plan, name, users[name])
        for held in _held(plan, name, place):
            for kind, block in users[name]:
                if place or not plan.is_current(kind, block):
                    _check_files(plan, kind, block, held)
    _check_limits(plan)
    _check_precision(plan)
    return _notes(plan)


def _notes(plan: Plan) -> list[str]:
    return [
        *_notes_of_texts(plan),
        *_notes_of_frameworks(plan),
        *_notes_of_seeds(plan),
        *_notes_of_points(plan),
        *_notes_of_stages(plan),
    ]


def _notes_of_stages(plan: Plan) -> list[str]:
    """Which stage of an experiment that grows this is, and how it grows."""
    if plan.stage is None or plan.stage.finished:
        return []
    ways = []
    if "ranges" in plan.config:
        ways.append("values are added to sweeps until the best lies inside")
    if "until" in plan.config:
        looks = join([str(number) for number in plan.config["until"]["looks"]])
        ways.append(f"seeds are added until each question is decided, at looks with {looks} a side")
    return [f"This is stage {plan.stage.number}: {', then '.join(ways)}."]


def _notes_of_points(plan: Plan) -> list[str]:
    """Numbers of points that are no power of two, of which Sobol points are less even."""
    found = plan.config.get("points", {})
    return [
        f"{number} points are less even than {1 << number.bit_length() - 1} or {1 << number.bit_length()} "
        f"(recipes.{family}.points)."
        for family, number in found.items()
        if number & (number - 1)
    ]


def _notes_of_frameworks(plan: Plan) -> list[str]:
    """Models that a framework of the grid cannot train, because of their format or of the task."""
    task = plan.task
    return [
        f"The model {name} (format: {plan.config['models'][name]['format']}) runs without "
        f"{join([framework_name(each) for each in left_out])}, which cannot train "
        f"{'it' if set(left_out) <= set(task.frameworks) else f'the task {task.name}'} (grid.frameworks)."
        for name, left_out in plan.config["grid"].get("left_out", {}).items()
    ]


def _notes_of_seeds(plan: Plan) -> list[str]:
    """Too few seeds for a verdict, as long as runs are missing: afterwards the report says so."""
    seeds = [
        (seed, seed) if isinstance(seed, int) else (seed["init"], seed["data"])
        for seed in plan.config["grid"]["seeds"]
    ]
    number = independent_seeds(seeds)
    if number >= FEWEST_SEEDS or all(Path(path).exists() for path in plan.run_files("run.json")):
        return []
    crossed = number < len(seeds)
    found = f"crosses seeds, with {number} of init or data" if crossed else f"has {count(number, 'seed')}"
    needed = f"{FEWEST_SEEDS} of each" if crossed else f"{FEWEST_SEEDS}"
    return [
        f"The grid {found}: no difference will get a verdict, which takes at least {needed} (grid.seeds). "
        "Seeds can be added later; finished runs stay."
    ]


def _notes_of_texts(plan: Plan) -> list[str]:
    blocks = {name: plan.config["datasets"][name] for name in plan.config["grid"]["datasets"]}
    return [
        f"The texts of {name} are made of the columns {', '.join(columns)}, joined with a space. If they are "
        "two texts to compare, name the second under columns.text_pair."
        for name, block in blocks.items()
        if len(columns := block["columns"].get("text", [])) > 1
        and "text_pair" not in block["columns"]
        and not plan.is_current("datasets", name)
    ]


def _users(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """The datasets and models of the grid, each as (kind, name), by their source."""
    users: dict[str, list[tuple[str, str]]] = {}
    for kind in ("datasets", "models"):
        for name in plan.config["grid"][kind]:
            users.setdefault(plan.config[kind][name]["source"], []).append((kind, name))
    return users


def _check_target(plan: Plan, word: str) -> None:
    """Refuse a target of a run outside the grid, for which Snakemake would show a traceback."""
    path, runs = PurePosixPath(os.path.normpath(word)), PurePosixPath(plan.experiment_folder, "runs")
    if path.is_relative_to(runs) and len(path.relative_to(runs).parts) > len(LEVELS):
        plan.find_run("/".join(path.relative_to(runs).parts[: len(LEVELS)]))


# --- sources ----------------------------------------------------------------------------------------------


def _first_place(plan: Plan, name: str) -> Path | tuple[()] | None:
    """The local path that a source will be fetched from; None if a URL is first; () if no path exists."""
    for location in candidates(plan.config["sources"][name]["locations"], plan.config["mirror"]):
        path = local_path(location)
        if path is None or path.exists():
            return path
    return ()


def _not_there(plan: Plan, name: str, users: Sequence[tuple[str, str]]) -> SeedbedError:
    looked = candidates(plan.config["sources"][name]["locations"], plan.config["mirror"])
    wanted = next(filter(None, map(file_name, plan.config["sources"][name]["locations"])), "the file")
    needed = ", ".join(f"{kind[:-1]} {block!r}" for kind, block in users)
    return SeedbedError(
        f"nothing is at the location of the source {name!r}, which the {needed} needs",
        where=f"config, sources.{name}.locations",
        found=Lines("".join(f"\n    - {one_line(location)}: no such file or folder" for location in looked)),
        hint=f"put it there, correct the path (relative to {Path.cwd()}), or give --config mirror=DIR, "
        f"a folder with {wanted}",
    )


def _check_mirror(plan: Plan, missing: Sequence[str]) -> None:
    """Fail if `mirror` does not exist, or is a file that no pending source is named after."""
    if not plan.config["mirror"] or not missing:
        return
    mirror = Path(plan.config["mirror"]).expanduser()
    if not mirror.exists():
        raise SeedbedError(
            "the mirror does not exist",
            where="config, mirror",
            found=plan.config["mirror"],
            hint="name a folder that holds the archives, or one of them; or leave it out",
        )
    names = [file_name(each) for name in missing for each in plan.config["sources"][name]["locations"]]
    if mirror.is_file() and mirror.name not in names:
        raise SeedbedError(
            "the mirror is a file that no pending source is named after",
            where="config, mirror",
            found=plan.config["mirror"],
            hint=f"name it as one of these: {', '.join(dict.fromkeys(filter(None, names)))}; or leave it out",
        )


def _held(plan: Plan, name: str, place: Path | tuple[()] | None) -> Iterator[Held]:
    """The files of a source, if cheap to list: at its local path, else in its fetched folder."""
    source = plan.config["sources"][name]
    if place:
        found = _listed(place, source)
        if found is not None:
            include = source["include"] or ["*"]
            taken = {each for pattern in include for each in fnmatch.filter(found[0], pattern)}
            yield Held(sorted(taken), found[1], str(place))
    elif plan.is_current("sources", name):
        folder = plan.results / "sources" / name
        manifest = folder / "manifest.json"
        if manifest.exists():
            content = read_json(manifest)
            yield Held(sorted(content["files"]), folder / "files", content["location"])


def _listed(place: Path, source: Mapping[str, Any]) -> tuple[list[str], Path | None] | None:
    """The names in a local folder, file or archive, and their folder; None if they are not cheap to list."""
    try:
        if place.is_dir():
            return [path.relative_to(place).as_posix() for path in files_below(place)], place
        named = source["kind"] == "auto" and archives.is_archive(place.name)
        if not named and source["kind"] != "archive":
            return [place.name], place.parent
        if zipfile.is_zipfile(place):
            with zipfile.ZipFile(place) as opened:
                names = [member.filename for member in opened.infolist() if not member.is_dir()]
        elif place.suffix == ".tar":
            with tarfile.open(place, "r:") as opened:
                names = [member.name for member in opened if member.isfile()]
        else:
            return None
    except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError):
        return None  # the rule that unpacks it reports the error
    return [str(PurePosixPath(name.replace("\\", "/"))) for name in names], None


# --- files of datasets and models -------------------------------------------------------------------------


def _check_files(plan: Plan, kind: str, name: str, held: Held) -> None:
    block = plan.config[kind][name]
    if kind == "models":
        from seedbed.models import intake  # here and below, since every job imports this module

        intake.find_names(held.names, block, held.root, held.where)
        return
    from seedbed.data.source_files import find_names

    source = {"files": held.names, "location": held.where}
    for split in (split for split, path in block["files"].items() if path is not None):
        find_names(block, split, f"datasets.{name}.files.{split}", source, held.root, block["source"])


# --- limits of models -------------------------------------------------------------------------------------


def _check_limits(plan: Plan) -> None:
    """Check recipes and datasets against the models of the grid that were already converted."""
    names = [name for name in plan.config["grid"]["models"] if plan.is_current("models", name)]
    paths = {name: plan.results / "models" / name / "model.json" for name in names}
    described = {name: read_json(path) for name, path in paths.items() if path.exists()}
    limits.check(described, **plan.asked_of_models())


# --- precision --------------------------------------------------------------------------------------------


def _check_precision(plan: Plan) -> None:
    """Refuse bfloat16 with fairseq where `device: auto` finds a GPU; resolving refuses it for `cuda`.

    Jobs on another host are refused there, before they train.
    """
    if plan.config["device"] != "auto" or plan.config["fused_seeds"]:
        return
    recipes = {run.recipe for run in plan.runs if run.framework == "fairseq"}
    short = [plan.config["recipes"][name] for name in sorted(recipes)]
    short = [recipe for recipe in short if recipe["precision"] == "bfloat16"]
    if short and (found := gpus.devices(plan.config)):
        refuse_bfloat16(short[0], f"device: auto, which finds the GPU {found[0]}")
