"""The weights that a classifier starts from, and what Transformers prints meanwhile."""

import logging

import pytest
from builders_training import make_job, make_run
from safetensors.torch import load_file, save_file
from transformers.utils import logging as transformers_logging

from seedbed.core.errors import SeedbedError
from seedbed.training import initial_models


@pytest.fixture
def checkpoint(tmp_path):
    """A job of a pretrained run, and the names of its checkpoint's weights."""
    job = make_job(tmp_path, make_run("transformers"))
    return job, load_file(job.weights / "model.safetensors")


@pytest.fixture
def printed():
    """The records that Transformers' own logger would print."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    transformers_logging.add_handler(handler)
    transformers_logging.set_verbosity_warning()
    yield records
    transformers_logging.remove_handler(handler)


def test_a_new_head_on_the_checkpoint_needs_no_table_of_missing_weights(checkpoint, printed):
    job, stored = checkpoint
    model = initial_models.build_classifier(job.weights, {**job.run, "init": "pretrained"}, 2)
    found = model.state_dict()
    assert all(found[name].equal(stored[name]) for name in stored if name.startswith("roberta."))
    assert not printed
    logging.getLogger("transformers.modeling_utils").warning("of something else")
    assert len(printed) == 1


@pytest.mark.parametrize("spoil", ["drop", "cut"])
def test_a_checkpoint_that_lacks_a_weight_of_the_encoder_is_refused(checkpoint, spoil):
    job, stored = checkpoint
    name = "roberta.encoder.layer.0.attention.self.query.weight"
    weight = stored.pop(name)
    if spoil == "cut":
        stored[name] = weight[:-1].contiguous()
    save_file(stored, job.weights / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SeedbedError, match="lacks weights of the model") as caught:
        initial_models.build_classifier(job.weights, {**job.run, "init": "pretrained"}, 2)
    assert caught.value.found == name
