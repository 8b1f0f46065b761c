"""Methods of fine-tuning: properties of a recipe's `method`, without importing PyTorch.

`training.methods` prepares and saves models of each method. A new method is an entry here and in `TRAINING`
there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A method of fine-tuning.

    Attributes:
        name: its name in the config.
        words: its name for people.
        trains: whether any weight is trained; if not, the untrained model is evaluated.
        has_adapter: whether it trains an adapter beside frozen weights.
        trains_part: whether it trains only a part of the model's own weights; the others are frozen.
        reads_states: whether it trains on states of the encoder, which are computed once for all runs.
        is_quantized: whether frozen weights are stored in 4 bits.
        packages: further packages whose version may change a number of its runs.
        settings: keys of a recipe that only some methods take, this one included.
        frameworks: the frameworks that can train it.
    """

    name: str
    words: str
    trains: bool = True
    has_adapter: bool = False
    trains_part: bool = False
    reads_states: bool = False
    is_quantized: bool = False
    packages: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ("transformers",)

    @property
    def freezes(self) -> bool:
        """Whether weights of the model stay frozen while others are trained."""
        return self.has_adapter or self.trains_part


BOTH = ("fairseq", "transformers")
METHODS = {
    method.name: method
    for method in (
        Method("full", "full fine-tuning", frameworks=BOTH),
        # Ben Zaken et al. 2022
        Method("bitfit", "BitFit", trains_part=True, frameworks=BOTH),
        Method(
            "last_layers",
            "fine-tuning of the last layers",
            trains_part=True,
            settings=("last_layers",),
            frameworks=BOTH,
        ),
        Method("head", "training of the head alone", trains_part=True, reads_states=True, frameworks=BOTH),
        # Hu et al. 2021
        Method("lora", "LoRA", has_adapter=True, packages=("peft",), settings=("lora", "frozen_dtype")),
        # Dettmers et al. 2023
        Method(
            "qlora",
            "QLoRA",
            has_adapter=True,
            is_quantized=True,
            packages=("peft", "bitsandbytes"),
            settings=("lora", "frozen_dtype", "quantization"),
        ),
        Method("none", "the untrained model", trains=False),
    )
}
ADAPTERS = tuple(name for name, method in METHODS.items() if method.has_adapter)
PARTIAL = tuple(name for name, method in METHODS.items() if method.trains_part)
# keys of a recipe that only some methods take
SETTINGS = tuple(dict.fromkeys(key for method in METHODS.values() for key in method.settings))
