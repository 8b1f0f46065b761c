"""Where a framework departs from the recipe, or from the other framework; run.json and the report list it."""

from collections.abc import Mapping
from typing import Any

Difference = dict[str, Any]


def _difference(setting: str, asked: Any, done: str) -> Difference:
    return {"setting": setting, "asked": asked, "done": done}


def of_fairseq(settings: Mapping[str, Any]) -> list[Difference]:
    """Where fairseq departs from the recipe or from Transformers.

    Args:
        settings: a resolved recipe.

    Returns:
        `setting`, what was `asked` of it, what was `done`.
    """
    found = [
        _difference("batches", "order by data seed", "drawn once; their order changes every epoch"),
        _difference("adam_epsilon", "", "added before the bias correction (fairseq's Adam)"),
        _difference("dropout", "", "random numbers seeded anew at every update"),
    ]
    if settings["weight_decay"] > 0 and settings["weight_decay_skip"]:
        asked = ", ".join(settings["weight_decay_skip"])
        found.append(_difference("weight_decay_skip", asked, "nothing is skipped"))
    if settings["precision"] == "float16":
        done = "float16 weights with a float32 master copy"
        found.append(_difference("precision", "float16", done))
    return found


def of_transformers(settings: Mapping[str, Any]) -> list[Difference]:
    """Where Transformers departs from the recipe or from fairseq, as `of_fairseq`."""
    found = [
        _difference("batches", "order by data seed", "drawn anew every epoch"),
        _difference("adam_epsilon", "", "added after the bias correction (torch.optim.AdamW)"),
        _difference("dropout", "", "one stream of random numbers, seeded once by the data seed"),
    ]
    if settings["activation_dropout"] > 0:
        asked = settings["activation_dropout"]
        found.append(_difference("activation_dropout", asked, "0: its RoBERTa has none"))
    if settings["precision"] == "float16":
        found.append(_difference("precision", "float16", "autocast over float32 weights"))
    return found


def of_fused(settings: Mapping[str, Any], framework: str) -> list[Difference]:
    """Where a run departs that was trained with other seeds as one batched model.

    Its order of examples and its optimizer are the framework's; the model and its random numbers are not.

    Args:
        settings: a resolved recipe.
        framework: `fairseq` or `transformers`.
    """
    found = {"fairseq": of_fairseq, "transformers": of_transformers}[framework](settings)
    together = [
        _difference(
            "model", framework, "Seedbed's batched RoBERTa, trained for all seeds of the cell at once"
        ),
        _difference(
            "dropout", "", "one stream of random numbers for all seeds, seeded once by their data seeds"
        ),
        _difference("a seed that diverges", "", "ends with the epoch in which it does"),
    ]
    return [*(item for item in found if item["setting"] != "dropout"), *together]
