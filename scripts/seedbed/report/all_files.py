"""All that people read of an experiment: figures, tables, summary and report.

One job makes them, since four took twice as long: each imported the same libraries and read the same tables.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seedbed.figures import plot
from seedbed.figures.base import Data
from seedbed.figures.captions import read_captions, write_captions
from seedbed.report import sources


def write(
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    reporting: Mapping[str, Any],
    config: Mapping[str, Any],
    processes: int = 1,
) -> None:
    """Write all files, the texts while other processes draw.

    Args:
        inputs: paths by name: those of `sources.read`; models, architectures and texts of
            `report.write_report`; of the audit, audit_figure (the SVG) and audit_caption.
        outputs: paths by name: svg and png of `plot.drawing`; captions; those of `export.write_tables`;
            summary (summary.md), facts (summary.json), report and config.
        reporting: `Plan.reporting()`.
        config: the resolved configuration.
        processes: how many draw at a time.

    Raises:
        SeedbedError: see `sources.read`; a figure could not be drawn.
    """
    experiment, found = sources.read(inputs, reporting, {}, Data)
    figures = [*outputs["svg"], inputs["audit_figure"]]
    with plot.drawing(experiment, outputs["svg"], outputs["png"], processes) as drawing:
        # imported while figures are drawn
        from seedbed.report import export, provenance, report, summary

        export.write_tables(inputs["summary"], inputs["contrasts"], reporting, outputs)
        provenance.write_config(config, outputs["config"])
        write_captions(outputs["captions"], drawing.captions())
        captions = read_captions([outputs["captions"], inputs["audit_caption"]], figures)
        found = replace(found, captions=captions)
        summary.write_summary(experiment, found, outputs["summary"], outputs["facts"])
        report.write_report(
            experiment,
            found,
            inputs["models"],
            inputs["architectures"],
            inputs["texts"],
            config,
            figures,
            outputs["report"],
            drawing.wait,
        )
