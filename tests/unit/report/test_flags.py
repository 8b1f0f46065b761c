"""The table of flags holds every option of a recipe, and names that both frameworks know."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.config.resolve import resolve_config
from seedbed.config.settings import Recipe
from seedbed.report import flags
from seedbed.report.documents.blocks import cell_text
from seedbed.report.documents.html import LONG_CELL

SCRIPTS = Path(__file__).parents[3] / "scripts"
# The flags that fairseq-train knows with Seedbed's plugin; in a Python of its own, since fairseq keeps what a
# plugin registers
LIST_FLAGS = """
import json, sys
from seedbed.models.fairseq_launcher import prepare_import
prepare_import()
from fairseq import options
from seedbed.training.fairseq.trainer import PLUGIN
parser = options.get_training_parser()
name = "seedbed_sentence_prediction"
options.parse_args_and_arch(parser, [
    "data", "--user-dir", str(PLUGIN), "--task", name, "--criterion", name, "--arch", "roberta_small",
    "--optimizer", "adam", "--lr-scheduler", "polynomial_decay", "--total-num-update", "1",
])
print(json.dumps(sorted(parser._option_string_actions)))
"""
# keys that a recipe of classification has lost where it trains all weights
UNUSED = (
    "min_updates",
    "points",
    "points_seed",
    "class_weight",
    "lora",
    "quantization",
    "frozen_dtype",
    "last_layers",
    "gradient_checkpointing",
    "loss_on",
    "sweep",
)
# run_glue.py is a script of Transformers' repository, not of its package
OWN_FLAGS_OF_RUN_GLUE = {"max_seq_length", "pad_to_max_length"}


@pytest.fixture(scope="module")
def fairseq_flags():
    command = [sys.executable, "-c", LIST_FLAGS]
    environment = {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1", "HOME": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def recipe(**changes):
    dataset = {"source": "s", "format": "csv", "files": {"train": "a", "test": "b"}, "labels": ["x", "y"]}
    config = {
        "experiment": "flags",
        "grid": {"datasets": ["d"], "models": ["m"], "recipes": ["lab"]},
        "sources": {"s": {"locations": ["nowhere"]}},
        "datasets": {"d": dataset},
        "models": {"m": {"source": "s"}},
        "recipes": {"lab": changes},
    }
    resolved = resolve_config(config)
    return resolved["recipes"][resolved["grid"]["recipes"][0]]


def names(where):
    return {name for option in flags.options() for kind, name in option.transformers if kind == where}


def test_every_option_of_a_recipe_is_there_once():
    keys = [option.key for option in flags.options()]
    assert sorted(keys) == sorted(Recipe.model_fields)


def test_an_option_without_a_flag_says_what_happens_instead():
    assert [o.key for o in flags.options() if not (o.fairseq and o.transformers) and not o.note] == []


def test_fairseq_knows_its_flags(fairseq_flags):
    named = {flag for option in flags.options() for flag in option.fairseq}
    noted = {flag for option in flags.options() for flag in re.findall(r"`(--[a-z-]+)`", option.note)}
    assert noted
    assert (named | noted) - fairseq_flags == set()


def test_transformers_knows_its_names():
    from transformers import RobertaConfig, TrainingArguments

    arguments = {field.name for field in dataclasses.fields(TrainingArguments)}
    assert names(flags.TRAINING) - arguments == set()
    assert names(flags.CONFIG) - set(RobertaConfig().to_dict()) == set()
    assert names(flags.SCRIPT) - OWN_FLAGS_OF_RUN_GLUE == set()
    kinds = {kind for option in flags.options() for kind, _ in option.transformers}
    assert kinds <= {flags.TRAINING, flags.CONFIG, flags.SCRIPT}


def test_notes_on_defaults_of_transformers_hold():
    from transformers import RobertaConfig, TrainingArguments

    defaults = {field.name: field.default for field in dataclasses.fields(TrainingArguments)}
    assert defaults["max_grad_norm"] == 1  # the note of clip_norm
    assert RobertaConfig().classifier_dropout is None  # the note of pooler_dropout: hidden dropout is taken
    assert RobertaConfig().hidden_dropout_prob == 0.1


def test_the_table_shows_the_values_of_a_recipe():
    table = flags.table(recipe(learning_rate=3e-4, max_positions=128, weight_decay_skip=["bias", "norm"]))
    rows = {row[0].strip("`"): dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == [option.key for option in flags.options() if option.key not in UNUSED]
    rate = rows["learning_rate"]
    assert (cell_text(rate["value"]), rate["value"].value) == ("`0.0003`", 3e-4)
    assert rate["fairseq-train"] == "`--lr`"
    assert rate["run_glue.py"] == "`--learning_rate`"
    assert cell_text(rows["max_positions"]["value"]) == "`128`"
    assert cell_text(rows["weight_decay_skip"]["value"]) == '`["bias", "norm"]`'
    assert (rows["weight_decay_skip"]["fairseq-train"], rows["weight_decay_skip"]["run_glue.py"]) == (
        None,
        None,
    )
    assert rows["dropout"]["run_glue.py"] == "`config: hidden_dropout_prob`"


def test_meanings_and_defaults_are_those_of_the_config():
    keys = [option.key for option in flags.options()]
    rows = {row[0].strip("`"): row for row in flags.meanings(keys).rows}
    assert list(rows) == keys
    assert [row[0] for row in flags.meanings({"epochs", "method"}).rows] == ["`method`", "`epochs`"]
    _, default, meaning = rows["learning_rate"]
    assert (cell_text(default), default.value) == ("`1e-05`", 1e-5)
    assert meaning == "Peak learning rate."
    assert rows["adam_epsilon"][2].endswith("fairseq adds it before the bias correction, Transformers after.")
    assert cell_text(rows["max_positions"][1]) == "`null`"
    assert all(row[2].startswith(Recipe.model_fields[key].description) for key, row in rows.items())


def test_flags_are_short_enough_to_stand_on_one_line():
    cells = [cell_text(cell).replace("`", "") for row in flags.table(recipe()).rows for cell in row]
    assert max(map(len, cells)) <= LONG_CELL
