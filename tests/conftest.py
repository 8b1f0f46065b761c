"""Where tests find the library, and the environment in which they and their subprocesses run."""

import os
import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

# before anything imports torch or transformers
os.environ.update(
    OMP_NUM_THREADS="1",  # pytest's workers share the cores; and sums in one thread repeat exactly
    HF_HUB_OFFLINE="1",  # tests need no network, and fail rather than use it
    TRANSFORMERS_OFFLINE="1",
    MPLBACKEND="Agg",  # there is no screen
)
if "SEEDBED_TEST_GPU" not in os.environ:  # tests are the same on a host with GPUs; `make test-gpu` shows them
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

# the same examples in every run, so that a failure repeats; without limit of time, as the machine may be busy
hypothesis.settings.register_profile("seedbed", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("seedbed")
