"""Files of an encoder's states, and what each was computed from, which its name tells.

The files are results/data/DATASET/MODEL/states/NAME.safetensors, where NAME is `pretrained` or, for random
weights, `random3-sd0.02` with init seed and standard deviation, followed by `-max64` if texts are cut to 64
tokens. Runs of both frameworks and of all experiments share them. `training.states` writes them, and
`data.states` reads them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from seedbed.core.errors import SeedbedError

FOLDER, SUFFIX = "states", ".safetensors"
PRETRAINED = "pretrained"  # the init of a checkpoint
# of a text: the last hidden state of the first token, and the mean over all tokens
FIRST, MEAN = "first", "mean"
KINDS = (FIRST, MEAN)
_PARTS = re.compile(r"(?:pretrained|random(\d+)-sd([0-9.]+(?:e-\d+)?))(?:-max(\d+))?")
PATTERN = re.sub(r"\((?!\?)", "(?:", _PARTS.pattern)  # for a wildcard, which takes no groups


@dataclass(frozen=True)
class EncoderOfStates:
    """What determines the states of a dataset's texts, beside the model.

    Attributes:
        init: pretrained or random.
        init_seed, random_init_sd: of random weights; None for pretrained ones.
        max_positions: the recipe's longest input in tokens; None: the model's positions.
    """

    init: str
    init_seed: int | None = None
    random_init_sd: float | None = None
    max_positions: int | None = None

    @classmethod
    def of(cls, init: str, init_seed: int, recipe: Mapping[str, Any]) -> Self:
        """The encoder of a run with this recipe."""
        if init == PRETRAINED:
            return cls.of_checkpoint(recipe)
        return cls(init, init_seed, recipe["random_init_sd"], recipe["max_positions"])

    @classmethod
    def of_checkpoint(cls, recipe: Mapping[str, Any]) -> Self:
        """The pretrained encoder, of texts as long as this recipe takes them."""
        return cls(PRETRAINED, max_positions=recipe["max_positions"])

    @classmethod
    def named(cls, name: str) -> Self:
        """The encoder of a file with this name.

        Raises:
            SeedbedError: no file of states is named like that.
        """
        found = _PARTS.fullmatch(name)
        if found is None:
            raise SeedbedError("no states have this name", where=name, hint="ask for runs or tables instead")
        seed, sd, longest = found.groups()
        cut = int(longest) if longest else None
        return cls("random", int(seed), float(sd), cut) if seed else cls(PRETRAINED, max_positions=cut)

    @property
    def name(self) -> str:
        """The name of the file."""
        init, cut = self.init, self.max_positions
        if init == "random":
            init += f"{self.init_seed}-sd{self.random_init_sd!r}"
        return init if cut is None else f"{init}-max{cut}"
