"""fairseq's settings composed without Hydra are those that Hydra composes, to the type and the order."""

import argparse
import copy

import pytest
from builders_training import make_fairseq_job, make_run

from seedbed.training.fairseq import composition, trainer  # before fairseq itself
from seedbed.training.fairseq.session import Session
from seedbed.training.progress import start
from seedbed.training.token_ids import read_splits

import hydra.experimental  # isort: skip
from fairseq import options, utils  # isort: skip
from fairseq.dataclass import utils as dataclass_utils  # isort: skip
from omegaconf import OmegaConf  # isort: skip

RUNS = {
    "pretrained": {"init": "pretrained"},
    "float16 at random, with all evaluated": {
        "precision": "float16",
        "evaluation": {"batch_size": 5, "test_curves": True},
        "clip_norm": 0.0,
    },
    "other numbers": {
        "learning_rate": 1e-5,
        "weight_decay": 0.0,
        "adam_betas": [0.8, 0.95],
        "adam_epsilon": 1e-9,
        "data_seed": 17,
        "warmup_ratio": 0.0,
        "epochs": 1,
    },
}


def flat(config, prefix=""):
    """Keys, types and values in their order; a Namespace is one of fairseq's sections."""
    found = []
    for key, value in config.items():
        if isinstance(value, argparse.Namespace):
            value = vars(value)
        nested = isinstance(value, dict)
        found += flat(value, f"{prefix}{key}.") if nested else [(f"{prefix}{key}", type(value), value)]
    return found


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("path", [None, "it's, [a] {b: c} ="])
def test_as_hydra_composes_them(tmp_path, kind, path):
    job = make_fairseq_job(tmp_path, make_run("fairseq", **copy.deepcopy(RUNS[kind])))
    splits = read_splits(job)
    session = Session(job, start(job, len(splits["train"].ids)), splits)
    utils.import_user_module(argparse.Namespace(user_dir=str(trainer.PLUGIN)))
    command = trainer.arguments(session)
    arguments = options.parse_args_and_arch(options.get_training_parser(), command)
    arguments.log_file = path
    found = {}
    for name, compose in (("quick", composition.compose), ("hydra", hydra.experimental.compose)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dataclass_utils, "compose", compose)
            config = dataclass_utils.convert_namespace_to_omegaconf(copy.deepcopy(arguments))
        assert OmegaConf.is_struct(config)
        found[name] = flat(OmegaConf.to_container(config))
    assert found["quick"] == found["hydra"]
    assert len(found["quick"]) > 300
