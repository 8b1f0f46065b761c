"""The disk after a power cut: checkpoints that were never whole, or are no longer."""

import pytest
from harness import RUNS, assert_whole

pytestmark = pytest.mark.slow
NEWEST = "newest=$(ls results/small/work/{run}/states/*.state | tail -n 1); "
DAMAGE = {
    "cut": NEWEST + "truncate -s -100 $newest",
    # the byte in the middle becomes another one
    "changed": NEWEST + "middle=$(($(stat -c %s $newest) / 2)); "
    'byte=$(od -An -tu1 -j $middle -N 1 $newest); printf "\\\\$(printf %o $((byte ^ 255)))" | '
    "dd of=$newest bs=1 seek=$middle conv=notrunc status=none",
    "empty, both": "for state in results/small/work/{run}/states/*.state; do : > $state; done",
    "half-written": NEWEST + "head -c 1000 $newest > $(dirname $newest)/000000099.part",
}


@pytest.mark.parametrize(
    ("framework", "damages", "begun"),
    [
        # killed after update 5; cut, so on from 4
        ("fairseq", [(5, "cut")], [0, 4]),
        # killed after update 5; changed, so on from 4 to 7; both empty, so from the start to 3; one that is
        # half-written is none, so on from 3
        ("transformers", [(5, "changed"), (7, "empty, both"), (3, "half-written")], [0, 4, 0, 3]),
    ],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(prepared, reference, framework, damages, begun):
    """The run goes on from the newest checkpoint that is whole, from the start if none is."""
    before = "true"
    for update, damage in damages:
        prepared.plan(framework, {"before": before, "at": "save", "number": update, "do": "kill"})
        before = DAMAGE[damage].format(run=RUNS[framework])
    prepared.plan(framework, {"before": before})
    prepared.run(framework, options=("--retries", "9"))
    assert prepared.begun() == begun
    assert_whole(prepared, reference, framework)
