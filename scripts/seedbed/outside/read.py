"""Read results that others trained, in the format of the program that wrote them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.outside.adapters import euroeval, lm_eval, mteb, run_glue, table
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted

AUTO = "auto"
# each module has fits(file), files_of(folder) and read(paths, wanted); any file fits the table, so it is last
FORMATS: Mapping[str, ModuleType] = {
    "lm-eval": lm_eval,
    "run_glue": run_glue,
    "euroeval": euroeval,
    "mteb": mteb,
    "table": table,
}


def read_results(
    paths: str | Path | Iterable[str | Path],
    *,
    format: str = AUTO,
    dataset: str | None = None,
    columns: Mapping[str, str] | None = None,
    metric: str | None = None,
    bounds: tuple[float, float] | None = None,
    labels: str | Path | None = None,
    folders: str | None = None,
) -> list[Results]:
    """What systems scored on the same examples, for each dataset.

    Args:
        paths: files and folders, all of one format.
        format: a key of `FORMATS`; "auto" recognises it.
        dataset: the dataset to take; of a table without datasets, its name.
        columns: of a table, by role (`columns.NAMES`) the column that has it.
        metric: the metric; of a table, also the column of its scores.
        bounds: least and largest possible score; known of common metrics.
        labels: of run_glue, a table with the labels of the predicted texts.
        folders: of run_glue, where folders name system, seed and dataset, such as {system}/seed{seed}.

    Raises:
        SeedbedError: there is no path or no such format; the files are of several formats; and what the
            `read` of the format raises.
    """
    given = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    if not given:
        raise SeedbedError("no file of results was named", where="paths", hint="name files or folders")
    for path in given:
        if not path.exists():
            raise SeedbedError("there is no such file or folder", where=str(path), hint="correct its path")
    name = _recognised(given) if format == AUTO else _known(format)
    _require_options_of(name, columns, labels, folders)
    wanted = Wanted(
        dataset=dataset,
        columns=columns,
        metric=metric,
        bounds=bounds,
        labels=None if labels is None else Path(labels),
        folders=folders,
    )
    return FORMATS[name].read(_files(given, name), wanted)


def _known(name: str) -> str:
    if name in FORMATS:
        return name
    raise SeedbedError(
        "an unknown format of results",
        where="format",
        found=name,
        hint=f"{spelling.nearest(name, FORMATS)}the formats are {', '.join((AUTO, *FORMATS))}",
    )


def _recognised(paths: Sequence[Path]) -> str:
    """The format of all paths."""
    found = [_format_of(path) for path in paths]
    if len(set(found)) > 1:
        other = next(place for place, name in enumerate(found) if name != found[0])
        raise SeedbedError(
            "the files are of two formats",
            where=f"{paths[0]}, and {paths[other]}",
            found=f"{found[0]} and {found[other]}",
            hint="name files of one format, or say the format",
        )
    return found[0]


def _format_of(path: Path) -> str:
    if path.is_dir():
        fitting = [name for name, module in FORMATS.items() if module.files_of(path)]
        if len(fitting) != 1:
            files = sorted(item.name for item in path.iterdir())
            raise SeedbedError(
                "a folder with results of several formats" if fitting else "a folder without known results",
                where=str(path),
                found=", ".join(fitting or files[:5]) or "an empty folder",
                hint="say the format"
                if fitting
                else "name the files of a table, or a folder of "
                f"{', '.join(name for name in FORMATS if name != 'table')}",
            )
        return fitting[0]
    if path.suffix in (".json", ".jsonl") and not any(module.fits(path) for module in _programs()):
        raise SeedbedError(
            "a JSON file that no known program wrote",
            where=str(path),
            hint=f"the formats are {', '.join(FORMATS)}; write other results as a table, CSV or Parquet",
        )
    return next(name for name, module in FORMATS.items() if module.fits(path))


def _programs() -> list[ModuleType]:
    return [module for name, module in FORMATS.items() if name != "table"]


def _files(paths: Sequence[Path], name: str) -> list[Path]:
    """The files of the format, once each, those of folders as well."""
    files: dict[Path, None] = {}
    for path in paths:
        found = FORMATS[name].files_of(path) if path.is_dir() else [path]
        if not found:
            raise SeedbedError(
                f"the folder has no results of {name}",
                where=str(path),
                found=", ".join(sorted(item.name for item in path.iterdir())[:5]) or "an empty folder",
                hint="name another folder, or the files themselves",
            )
        files |= dict.fromkeys(found)
    return list(files)


def _require_options_of(
    name: str, columns: Mapping[str, str] | None, labels: str | Path | None, folders: str | None
) -> None:
    """Refuse an option that the format would ignore."""
    own = {"columns": ("table", columns), "labels": ("run_glue", labels), "folders": ("run_glue", folders)}
    for option, (owner, value) in own.items():
        if value and name != owner:
            raise SeedbedError(
                f"{option} is an option of {owner} alone",
                where=option,
                found=f"results of {name}",
                hint=f"leave {option} out, or set format to {owner}",
            )
