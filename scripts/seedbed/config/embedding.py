"""Let the Snakefile run in any working directory, and as a module of another Snakefile."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError
from snakemake.path_modifier import PathModifier
from snakemake.utils import update_config

from seedbed.config.yaml_files import locate
from seedbed.core.errors import SeedbedError
from seedbed.sources.locations import ROOT

CONFIG_FILE = ROOT / "config.yaml"


def config_file(workflow: Any) -> str:
    """The first config file: config.yaml of the working directory if it exists, else the workflow's.

    A module always takes the workflow's, since config.yaml of the working directory belongs to the Snakefile
    that uses the module.
    """
    here = Path("config.yaml")
    return str(here if here.exists() and not is_module(workflow) else CONFIG_FILE)


def is_module(workflow: Any) -> bool:
    """Whether the Snakefile that is being read is a module of another one."""
    return not workflow.modifier.is_main_snakefile()


def adapt(workflow: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The complete config of a module; outside of a module, `config` itself.

    The `config:` of a module statement is an overlay on config.yaml, like a file of --configfile. A `prefix:`
    or `replace_prefix:` is applied only to the results folder: Snakemake would also apply it to the locations
    of sources, and to "<data>/..." before it knows <data>.

    Raises:
        SeedbedError: `replace_prefix` moves only a part of the results.
    """
    if not is_module(workflow):
        return config
    adapted = load_configfile(str(CONFIG_FILE))
    update_config(adapted, copy.deepcopy(config))
    results = str(adapted.get("results", "results"))
    modifier = workflow.modifier.path_modifier
    moved = str(modifier.replace_prefix(f"{results}/")).rstrip("/")
    for part in ("sources", "data", "models", "logs", "benchmarks", adapted["experiment"]):
        path = f"{results}/{part}/"
        if str(modifier.replace_prefix(path)) != f"{moved}/{part}/":
            raise SeedbedError(
                "replace_prefix moves only a part of the results, which must stay together",
                where=f"the module statement that uses Seedbed; {path}",
                found=str(modifier.replace_prefix(path)),
                hint=f'move the whole folder: replace_prefix: {{"{results}/": "ELSEWHERE/"}}',
            )
    workflow.modifier.path_modifier = PathModifier(None, None, workflow)
    return adapted | {"results": moved}


def chain(workflow: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call functions before the first and after the last job of a workflow that uses this one as a module.

    Snakemake ignores onstart and onsuccess of a module.
    """

    def both(first: Callable[[Any], None], second: Callable[[], None]) -> Callable[[Any], None]:
        def run(log: Any) -> None:
            first(log)
            second()

        return run

    workflow._onstart = both(workflow._onstart, before)
    workflow._onsuccess = both(workflow._onsuccess, after)


class Refusal(WorkflowError):
    """A SeedbedError that Snakemake prints as text, without the line of Seedbed that raised it.

    Snakemake searches the traceback for a faulty line of a Snakefile, but no such line is wrong.
    """

    __traceback__ = property(lambda self: None, lambda self, value: None)


Refusal.__name__ = "Error"  # Snakemake prints the name of the class first


def refusal(error: SeedbedError, workflow: Any) -> Refusal:
    """The error that a Snakefile raises for a SeedbedError; keys get their file and line."""
    own = config_file(workflow)  # Snakemake lists it last, but files of the command line override it
    paths = [path for path in workflow.configfiles if str(path) != own]
    # a module's config comes from a Snakefile, or from a key of that Snakefile's config
    where = error.where if is_module(workflow) else locate(error.where, [own, *paths])
    return Refusal(str(SeedbedError(error.what, where=where, found=error.found, hint=error.hint)))
