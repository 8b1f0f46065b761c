"""Figures, tables, summary and report of an experiment, made by one job."""

from pathlib import Path

import pytest
from builders_report import draw_nothing, write_extras
from synthetic import Synthetic, make_experiment

from seedbed.config import plan
from seedbed.figures import registry
from seedbed.figures.captions import Caption, write_captions
from seedbed.report import all_files

TABLES = [f"{name}_{ending}" for name in ("summary", "contrasts") for ending in ("csv", "md", "tex")]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Synthetic:
    experiment = make_experiment(tmp_path_factory.mktemp("results"), seeds=[0, 1])
    experiment.plan.config["statistics"]["replicates"] = 200
    experiment.aggregate()
    draw_nothing(experiment)
    write_captions(experiment.experiment / "figures/audit.json", {"data_audit": Caption("Audit.", "All.")})
    return experiment


def write(made: Synthetic, folder: Path, processes: int) -> dict[str, bytes]:
    """Write all files; their content by path."""
    known, home = made.plan, made.experiment
    inputs = {
        **made.outputs,
        **write_extras(made),
        "run_json": known.run_files("run.json"),
        "parity": known.per_pair("parity.json"),
        "parameters": known.per_model("parameters.csv"),
        "audit": home / "data_audit.csv",
        "audit_figure": home / "figures/data_audit.svg",
        "audit_caption": home / "figures/audit.json",
    }
    names = registry.names_for(known)
    outputs = {
        ending: [folder / "figures" / f"{name}.{ending}" for name in names] for ending in ("svg", "png")
    }
    outputs |= {name: folder / "tables" / name for name in TABLES}
    outputs |= {name: folder / name for name in ("captions", "summary", "facts", "report", "config")}
    all_files.write(inputs, outputs, known.reporting(), plan.canonical(known.config), processes)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_any_number_of_processes_writes_the_same_files(made, tmp_path):
    first, second = (write(made, tmp_path / str(count), count) for count in (1, 3))
    assert first == second
    assert len(first) == 2 * len(registry.names_for(made.plan)) + len(TABLES) + 5
    page = first["report"].decode()
    assert page.count("data:image/svg+xml") == len(registry.names_for(made.plan)) + 1
