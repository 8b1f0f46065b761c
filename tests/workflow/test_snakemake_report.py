"""Snakemake's own report: made without a network, with captions, categories and labels."""

import base64
import json
import os
import re
import zipfile

import pytest
from harness import Project, succeeded

from seedbed.models.isolation import find_unshare

# where a network is reachable in spite of this, `unshare` takes it away
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")


pytestmark = pytest.mark.slow


def make_report(project: Project, name: str) -> str:
    """The text of the report's page, made where nothing outside can be reached."""
    prefix, _ = find_unshare()
    made = project.snakemake("--report", name, prefix=prefix, environment=NO_NETWORK)
    succeeded(made)
    path = project.folder / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.read(f"{path.stem}/report.html").decode()
    return path.read_text(encoding="utf-8")


def variable(page: str, name: str):
    """What the page's script assigns to a variable."""
    return json.loads(re.search(rf'<script id="{name}">\s*var {name} = (.*);\s*</script>', page)[1])


def test_the_report_holds_answer_figures_tables_and_runs_with_captions_and_labels(finished):
    page = make_report(finished, "report.html")
    results = {
        os.path.relpath(path, "results/small"): value for path, value in variable(page, "results").items()
    }
    categories = variable(page, "categories")
    assert set(categories) == {"Answer", "Figures", "Tables", "Runs"}
    there = {
        path.relative_to(finished.folder / "results/small").as_posix()
        for pattern in (
            "figures/*.svg",
            "figures/*.png",
            "*.csv",
            "tables/[a-z]*",
            "summary.md",
            "report.html",
            "runs/**/metrics.csv",
        )
        for path in (finished.folder / "results/small").glob(pattern)
    }
    assert set(results) == there
    for path, result in results.items():
        assert "Undefined" not in result["caption"]
        assert len(re.sub("<[^>]+>", "", result["caption"]).split()) >= 8, path
        assert "system-message" not in result["caption"], path
        assert result["data_uri"].startswith("data:"), path
    assert results["figures/test_accuracy.svg"]["labels"] == {"figure": "test accuracy", "format": "svg"}
    assert "95% interval" in results["figures/test_accuracy.svg"]["caption"]
    assert "2 a group" in results["figures/test_accuracy.svg"]["caption"]
    embedded = results["summary.md"]["data_uri"].partition("base64,")[2]
    summary = finished.folder / "results/small/summary.md"
    assert base64.b64decode(embedded) == summary.read_bytes()


def test_the_init_of_runs_becomes_a_toggle(finished):
    page = make_report(finished, "report.html")
    results, runs = variable(page, "results"), variable(page, "categories")["Runs"]
    assert set(runs) == {f"{name}: books, generated, quick" for name in ("fairseq", "transformers")}
    for paths in runs.values():
        labels = [results[path]["labels"] for path in paths]
        assert len(labels) == 4
        first, *others = labels[0]
        assert first == "seed"
        # as Snakemake's page decides: two values, each on half of the results, and no other label like that
        halves = [
            name
            for name in others
            if sorted(map([each[name] for each in labels].count, {each[name] for each in labels})) == [2, 2]
        ]
        assert halves == ["init"]
        assert {(each["seed"], each["init"]) for each in labels} == {
            (seed, init) for seed in ("seed0", "seed1") for init in ("pretrained", "random")
        }


def test_a_zip_holds_the_files_beside_the_page(finished):
    page = make_report(finished, "report.zip")
    with zipfile.ZipFile(finished.folder / "report.zip") as archive:
        names = set(archive.namelist())
        for result in variable(page, "results").values():
            assert f"report/{result['data_uri']}" in names
