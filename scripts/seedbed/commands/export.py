"""Export a finished run as a folder that Transformers loads without Seedbed.

OUTPUT gets config.json with the names of the labels, model.safetensors, the tokenizer, and README.md, a model
card with the results of the experiment, the audit of its data, the recipe and the limits. Runs of fairseq are
converted, and adapters merged into their models. Before OUTPUT appears, what Transformers loads from it must
predict the whole test set as the run did.
"""

import argparse
from pathlib import Path
from typing import Any

from seedbed import commands


def add_parser(subparsers: Any) -> None:
    """Add `seedbed export`."""
    parser = subparsers.add_parser(
        "export",
        help="write a finished run as a folder for Transformers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="folder of a run, such as results/demo/runs/.../demo/seed0")
    parser.add_argument("output", type=Path, help="the folder, which must not exist")


def run(options: argparse.Namespace) -> None:
    """Write the folder.

    Raises:
        SeedbedError: see `finished_runs.read`, `model_card.read_card`, `weights.find` and `export.export`; or
            the output exists or cannot be written.
    """
    from seedbed.prediction import finished_runs
    from seedbed.report import model_card

    commands.check_training_stack()
    commands.check_new(options.output)
    finished = finished_runs.read(options.run)
    card = model_card.read(finished, options.output.name)

    from seedbed.prediction.export import export
    from seedbed.prediction.weights import find

    exported = export(finished, find(finished, commands.tell), options.output, card.text)
    size = sum(path.stat().st_size for path in options.output.iterdir()) / 2**20
    print(f"{options.output}: {size:.0f} MiB, for pipeline('text-classification', ..., truncation=True)")
    print(f"Largest difference of a test prediction from predictions.csv: {exported.difference:.1g}")
    print(f"Before you share it, fill in licence, language and use: {options.output / 'README.md'}")
