"""Differences of a framework from the recipe or from the other framework, for run.json and the report."""

from collections.abc import Iterable, Mapping
from typing import Any

from seedbed.running.jobs import Job

Difference = dict[str, Any]


def difference(setting: str, asked: Any, done: str) -> Difference:
    """A difference: a setting, its value in the recipe, and its value in the run."""
    return {"setting": setting, "asked": asked, "done": done}


def of_fairseq(settings: Mapping[str, Any]) -> list[Difference]:
    """Differences of fairseq from the recipe or from Transformers.

    Args:
        settings: a resolved recipe.

    Returns:
        `setting`, its value in the recipe (`asked`), and its value in the run (`done`).
    """
    found = [
        difference("batches", "order by data seed", "drawn once; their order changes every epoch"),
        difference("adam_epsilon", "", "added before the bias correction (fairseq's Adam)"),
        difference("dropout", "", "random numbers seeded anew at every update"),
    ]
    if settings["weight_decay"] > 0 and settings["weight_decay_skip"]:
        asked = ", ".join(settings["weight_decay_skip"])
        found.append(difference("weight_decay_skip", asked, "nothing is skipped"))
    if settings["precision"] == "float16":
        done = "float16 weights with a float32 master copy"
        found.append(difference("precision", "float16", done))
    return found


def of_states(job: Job) -> list[Difference]:
    """Differences of a run from its recipe because its encoder's states are computed once."""
    if job.states is None:
        return []
    dropouts = ("dropout", "attention_dropout", "activation_dropout")
    asked = {key: job.settings[key] for key in dropouts if job.settings[key] > 0}
    done = "0 in the encoder, whose states are computed once"
    return [difference(key, value, done) for key, value in asked.items()]


def of_transformers(settings: Mapping[str, Any], own: Iterable[Difference] | None = None) -> list[Difference]:
    """Differences of Transformers from the recipe or from fairseq; see `of_fairseq`.

    Args:
        settings: a resolved recipe.
        own: those of the architecture, by default of a converted RoBERTa.
    """
    found = [
        difference("batches", "order by data seed", "drawn anew every epoch"),
        difference("adam_epsilon", "", "added after the bias correction (torch.optim.AdamW)"),
        difference("dropout", "", "one stream of random numbers, seeded once by the data seed"),
    ]
    if own is not None:
        found += own
    elif settings["activation_dropout"] > 0:
        asked = settings["activation_dropout"]
        found.append(difference("activation_dropout", asked, "0: its RoBERTa has none"))
    if settings["precision"] == "float16":
        found.append(difference("precision", "float16", "autocast over float32 weights"))
    return found
