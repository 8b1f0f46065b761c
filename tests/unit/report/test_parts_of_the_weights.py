"""Summary and report of an experiment whose methods train a part of the weights."""

import pytest
from builders_report import write_report, write_trainable, write_whole
from synthetic import make_experiment

METHODS = ("bitfit", "last_layers", "head")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Full fine-tuning and three methods that train a part of the weights, from the pretrained init alone."""
    made = make_experiment(
        tmp_path_factory.mktemp("made"),
        recipes={name: {"method": name} for name in METHODS},
        inits=["pretrained"],
        seeds=[0, 1, 2],
        frameworks=["transformers"],
    )
    write_trainable(made)
    return made


def test_each_is_compared_with_full_fine_tuning_by_its_name(made):
    text = write_whole(made)
    assert "What does it cost to train a part of the weights?" in text
    for name in ("BitFit", "fine-tuning of the last layers", "training of the head alone"):
        assert name in text


def test_the_report_explains_what_is_trained(made):
    page = write_report(made)
    assert "What is trained beside frozen weights" in page
    assert "N(7d + f) + d" in page
    assert "What the adapters train" not in page
    assert "LoRA trains two matrices" not in page
