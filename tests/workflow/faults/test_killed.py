"""A run that is killed, at whatever moment, goes on when it is started again, and loses nothing."""

import random

import pytest
from harness import NEVER, RUNS, UPDATES, assert_whole

RETRY = ("--retries", "9")


@pytest.mark.slow
@pytest.mark.parametrize("framework", RUNS)
def test_a_run_killed_again_and_again_ends_as_if_nothing_had_been(prepared, reference, framework):
    """While it writes a checkpoint, after one, at a random update, and before and after it publishes."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")  # pytest shows it where the test fails
    draw = random.Random(seed)
    update = draw.randrange(8, UPDATES)
    moments = [("writing", 1), ("save", 3), ("update", update), ("publishing", 0), ("published", 0)]
    prepared.plan(framework, *({"at": at, "number": number, "do": "kill"} for at, number in moments))
    prepared.run(framework, options=RETRY)
    assert len(prepared.journal("kill")) == len(moments)
    # the first kill left no checkpoint, the second three updates, the third all but the last
    assert prepared.resumed_at(framework) == [3, update - 1, UPDATES]
    assert prepared.begun() == [
        0,
        0,
        3,
        update - 1,
        UPDATES,
    ]
    assert_whole(prepared, reference, framework)


# batch systems send SIGTERM before they kill, and where asked SIGUSR1; update 16 is the last of its epoch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "update", "signal_name"), [("fairseq", 16, "SIGTERM"), ("transformers", 21, "SIGUSR1")]
)
def test_a_signal_has_a_checkpoint_written(prepared, reference, framework, update, signal_name):
    """No checkpoint would come by itself: the one from which the run goes on is the signal's."""
    prepared.config |= {"training_checkpoints": NEVER}
    prepared.plan(framework, {"at": "update", "number": update, "do": "ask", "signal": signal_name})
    prepared.run(framework, options=RETRY)
    assert prepared.record(framework)["resumed"] == [{"step": update, "cause": signal_name}]
    assert_whole(prepared, reference, framework)
