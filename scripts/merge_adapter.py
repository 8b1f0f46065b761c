"""Merge the adapter of a run into its base: python scripts/merge_adapter.py RUN_FOLDER OUTPUT

RUN_FOLDER is results/EXPERIMENT/runs/DATASET/MODEL/transformers/INIT/RECIPE/SEED of a recipe with the method
lora or qlora. OUTPUT becomes a model in Hugging Face format that needs no adapter.
"""

import argparse
import sys
from pathlib import Path

from seedbed.core.errors import SeedbedError, explaining_system_errors


def main() -> int:
    """Merge and print remarks; returns 1 after an error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run_folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("output", type=Path, metavar="OUTPUT")
    parser.add_argument("--base", type=Path, help="the model's folder, if the workflow has not made it")
    arguments = parser.parse_args()
    # after the arguments: PyTorch takes seconds; bitsandbytes, too, and nothing here is in 4 bits
    sys.modules["bitsandbytes"] = None
    from seedbed.core import checksums, interruption
    from seedbed.training import merging
    from seedbed.training.transformers import be_quiet

    be_quiet()
    interruption.unwind()  # else a stopped merge would leave a half-written folder
    try:
        with explaining_system_errors():
            checksums.compare(
                [arguments.run_folder / "run.json", *(arguments.run_folder / "adapter").glob("*")]
            )
            notes = merging.merge_run(arguments.run_folder, arguments.output, arguments.base)
    except SeedbedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join([f"merged: {arguments.output}", *notes]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
