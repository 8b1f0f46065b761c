"""`seedbed plan`: what it prints, writes and refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import seedbed
from seedbed.commands import main

EXPERIMENT = Path(__file__).parents[2] / "golden" / "approved" / "documents" / "plain"
ASSUMED = ["--accuracy", "0.8", "--examples", "2000"]


def plan(capsys, *arguments, code=0):
    """What is printed, or the error."""
    assert main(["plan", "--difference", "2", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    if code:
        assert printed.out == ""
    return printed.err if code else " ".join(printed.out.split())


def test_an_experiment_has_a_screen_for_each_difference_and_the_numbers_in_a_file(capsys, tmp_path):
    out = tmp_path / "plan.csv"
    told = plan(capsys, "--from", EXPERIMENT, "--question", "pretrained - random", "--output", out)
    rows = pd.read_csv(out)
    assert list(rows.question.unique()) == [
        "pretrained - random, fairseq", "pretrained - random, transformers"
    ]  # fmt: skip
    assert set(rows.difference) == {0.02}
    for name, of_question in rows.groupby("question"):
        at_hand = of_question[of_question.examples == 400]
        assert f"{name} Answer On 400 test examples {at_hand.seeds_needed.iloc[0]:.0f} seeds a side" in told
        (ten,) = at_hand[at_hand.seeds == 10].detectable
        assert f" {100 * ten:.1f} (" in told
    assert told.endswith(f"Numbers: {out}")


def test_it_needs_nothing_that_trains_or_runs_workflows():
    blocked = ["torch", "transformers", "fairseq", "snakemake", "pydantic", "sklearn"]
    arguments = ["plan", "--difference", "2", "--from", str(EXPERIMENT), "--question", "random, fairseq"]
    program = f"import sys; sys.modules.update(dict.fromkeys({blocked})); from seedbed.commands import main; "
    ran = subprocess.run(
        [sys.executable, "-c", f"{program} sys.exit(main({arguments}))"],
        env=os.environ | {"PYTHONPATH": str(Path(seedbed.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "seeds a side" in ran.stdout


def test_accuracies_have_a_plan_that_says_what_was_not_given(capsys):
    told = plan(capsys, *ASSUMED, "--sd-seeds", "1.5", "--agreement", "0.85")
    assert "On 2,000 test examples no number of seeds finds a true difference of 2 points" in told
    assert "standard deviations over seeds of 1.5 points" in told
    assert "right or wrong together on 85% of the examples" in told
    assert told.count("Not given") == 1
    assert "--agreement-seeds" in told
    known = plan(capsys, *ASSUMED, "--sd-seeds", 1.5, "--agreement", 0.85, "--agreement-seeds", 0.88)
    assert "On 2,000 test examples 15 seeds a side find a true difference of 2 points" in known
    assert "Not given" not in known


def test_sides_with_seeds_of_their_own_have_more_degrees_of_freedom(capsys):
    def three(*more):
        told = plan(capsys, *ASSUMED, "--sd-seeds", 1.5, "--correlation-seeds", 0.5, *more, "--seeds", 3)
        return float(told.split("-------- 3 ")[1].split()[0])

    assert three("--unpaired") < three()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--accuracy", "80", "--examples", "2000"], "hint:  give a number between 0 and 1: 0.8"),
        (["--accuracy", "0.8"], "give it: --examples 2000"),
        (["--accuracy", "0.8", "0.7", "0.6", "--examples", "9"], "give one number for both sides, or two"),
        ([*ASSUMED, "--agreement", "85"], "hint:  give a number between 0 and 1: 0.85"),
        ([*ASSUMED, "--agreement", "0.5"], "give --agreement from 0.6 to 1"),
        ([*ASSUMED, "--sd-seeds", "-1"], "give points, 0 or more"),
        ([*ASSUMED, "--question", "fairseq"], "leave out --question or --accuracy"),
        (["--from", EXPERIMENT, "--sd-seeds", "1"], "leave out --sd-seeds or --from"),
        (["--from", EXPERIMENT, "--unpaired"], "leave out --unpaired or --from"),
        (["--from", EXPERIMENT, "--seeds", "2"], "give numbers of 3 or more"),
        (["--from", EXPERIMENT, "--question", "camembert"], "has: pretrained - random, fairseq;"),
        (["--from", EXPERIMENT, "--output", "plan.txt"], "ends in .csv"),
        (["--from", "results/none"], "no such folder"),
        ([*ASSUMED, "--correlation", "1", "--correlation-seeds", "1", "--sd-seeds", "0"], "below 1"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(capsys, arguments, told):
    assert told in plan(capsys, *arguments, code=1)


@pytest.mark.parametrize("arguments", [[], ["--from", "x", "--accuracy", "0.8"]])
def test_variances_come_from_one_source(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(["plan", "--difference", "2", *arguments])
    assert "--from" in capsys.readouterr().err
