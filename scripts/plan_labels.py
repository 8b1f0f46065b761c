"""Say how many labels a target takes: python scripts/plan_labels.py results/x 0.85 [--metric macro_f1]

The experiment must have run with several sizes of training (grid.train_sizes). For each of its learning
curves this prints the number of training texts with its interval; beyond the sizes tried it is a bound, and
what a power law says there stands on a line of its own. FILE.csv gets the same numbers, a row a curve.

The target is a fraction of accuracies and F1, in nats of losses, and else in the unit of the metric.
"""

import argparse
import sys
from pathlib import Path

from seedbed import commands
from seedbed.analysis.label_plan import NEED_COLUMNS, plan_labels
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.rows import write_table
from seedbed.report.label_plan import facts


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", type=Path, help="folder of an experiment, such as results/demo_sizes")
    parser.add_argument("target", metavar="TARGET", help="test score to reach, such as 0.85")
    parser.add_argument("--metric", help="of the target, if not the main one of the experiment")
    parser.add_argument("--output", type=Path, help="write the numbers to FILE.csv, too")
    commands.add_statistics(parser)
    options = parser.parse_args(arguments)
    output = options.output
    try:
        with explaining_system_errors():
            commands.check_table(output)
            plan = plan_labels(
                options.experiment, options.target, options.metric, commands.statistics_of(options)
            )
            if output is not None:
                write_table(output, NEED_COLUMNS, plan.rows)
        places = [] if output is None else [f"Numbers: {output}"]
        commands.show(facts(plan, commands.columns()), places, "", lines=None)
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
