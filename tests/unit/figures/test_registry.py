"""The registry of figures: all that it names exists, and an experiment has the figures of its grid."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
from builders import load_config

from seedbed.config.plan import Plan
from seedbed.figures import registry

ROOT = Path(__file__).parents[3]
ALWAYS = {"learning_curves", "test_accuracy", "calibration", "confusion", "time_and_memory"}
ONE_OF_EACH = {"frameworks": ["fairseq"], "inits": ["random"]}


@pytest.mark.parametrize(
    ("grid", "more"),
    [
        ({}, {"contrasts"}),
        (ONE_OF_EACH, set()),
        ({**ONE_OF_EACH, "frameworks": ["fairseq", "transformers"]}, {"contrasts"}),
        ({**ONE_OF_EACH, "models": ["roberta_tiny_fr", "twin"]}, {"contrasts"}),
        ({**ONE_OF_EACH, "datasets": ["reviews_fr", "twin"]}, {"performance_profile"}),
        ({**ONE_OF_EACH, "recipes": ["swept"]}, {"test_accuracy_by_recipe", "expected_validation"}),
        ({**ONE_OF_EACH, "recipes": ["demo", "single"]}, set()),
    ],
)
def test_the_figures_are_those_that_the_grid_has_something_for(tmp_path, grid, more):
    raw = {**load_config([ROOT / "config.yaml"]), "results": str(tmp_path / "results")}
    raw["grid"] |= grid
    raw["datasets"]["twin"] = raw["datasets"]["reviews_fr"]
    raw["models"]["twin"] = raw["models"]["roberta_tiny_fr"]
    raw["recipes"]["swept"] = {"sweep": {"learning_rate": [1e-5, 1e-4]}}
    raw["recipes"]["single"] = {"sweep": {"learning_rate": [1e-5]}}
    assert set(registry.names_for(Plan(copy.deepcopy(raw)))) == ALWAYS | more
    raw["evaluation"]["test_curves"] = True
    assert set(registry.names_for(Plan(raw))) == ALWAYS | more | {"test_curves"}


@pytest.mark.parametrize("spec", registry.FIGURES, ids=lambda spec: spec.name)
def test_a_figure_has_a_drawing_function_and_a_caption_in_snakemakes_report(spec):
    assert callable(spec.function())
    assert (ROOT / "resources/report/figures" / f"{spec.name}.rst").read_text(encoding="utf-8").strip()


def test_every_caption_in_snakemakes_report_is_of_a_figure():
    there = {path.stem for path in (ROOT / "resources/report/figures").iterdir()}
    assert there == {spec.name for spec in registry.FIGURES}


def test_the_registry_loads_no_drawing_library():
    code = "import sys; import seedbed.figures.registry; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "seedbed.figures.registry" in loaded
    assert not loaded & {"matplotlib", "seaborn", "pandas"}
