"""Check names that blocks of the config refer to, and explain how to define missing ones."""

import re
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError

CAUSAL = re.compile(r"gpt|bloom|llama|mistral|qwen|gemma|phi-|opt-", re.IGNORECASE)  # names of causal models
# names of encoders that are no RoBERTa with a SentencePiece model, for the format auto
ENCODER = re.compile(
    r"^(facebookai/)?(distil)?roberta[-_.](base|large)|(^|/)(distil|al|mobile|modern|euro)?bert[-_]|distilbert"
    r"|deberta|electra|camembertv2|camemberta",
    re.IGNORECASE,
)
# names on the hub of popular models that Seedbed cannot read, and the reason
UNSUPPORTED = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (r"^roberta\.(base|large)", "it has GPT-2's byte-level BPE in fairseq's format"),
        (r"xlnet", "it is neither an encoder nor a causal model"),
        (r"(^|/)(m|flan-|by)?t5[-_]|(^|/)m?bart[-_]", "it is an encoder-decoder"),
    )
)


def check_names(config: dict[str, Any]) -> None:
    """Check that all named datasets, models, recipes and sources are defined.

    Raises:
        SeedbedError: a name is not defined; the hint shows how to define it.
    """
    references = [
        *(
            (f"grid.{kind}", kind, name)
            for kind in ("datasets", "models", "recipes")
            for name in config["grid"][kind]
        ),
        *(
            (f"datasets.{name}.source", "sources", item["source"])
            for name, item in config["datasets"].items()
        ),
        *((f"models.{name}.source", "sources", item["source"]) for name, item in config["models"].items()),
    ]
    for where, kind, name in references:
        if name not in config[kind]:
            raise SeedbedError(
                f"{name!r} is not defined under {kind}",
                where=f"config, {where}",
                found=name,
                hint=f"{spelling.nearest(name, config[kind], cutoff=0.7)}valid names: "
                f"{', '.join(config[kind]) or 'none is defined'}. {_how_to_define(kind, name, config)}",
            )


def _how_to_define(kind: str, name: str, config: dict[str, Any]) -> str:
    """The YAML to add to the config for an undefined name."""
    if kind == "models" and (reason := next((why for word, why in UNSUPPORTED if word.search(name)), "")):
        return f"{name} cannot be added: {reason}, which is not supported"
    short = re.sub(r"[^A-Za-z0-9_.-]", "_", name.split("/")[-1]).lstrip("_.-") or "mine"
    known = short.lower().replace("-", "_")
    known = next((source for source in (f"{known}_hf", known) if source in config["sources"]), None)
    owner = name if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else f"OWNER/{short}"
    on_hub = kind == "models" or (kind == "datasets" and owner == name)
    source = f"hf://{'datasets/' * (kind == 'datasets')}{owner}" if on_hub else f"data/{short}.zip"
    files = (
        "format: parquet, files: {train: train, test: test}"
        if on_hub
        else "format: csv, files: {train: train.csv, test: test.csv}"
    )
    form = "causal" if CAUSAL.search(name) else "auto" if ENCODER.search(name) else "huggingface"
    if kind == "models" and known:
        model = f"{short}: {{source: {known}, format: {form}}}"
        return f"To define it, add models: {{{model}}}, and grid: {{models: [{short}]}}"
    definitions = {
        "sources": f"sources: {{{short}: {{locations: [PATH or URL]}}}}",
        "recipes": f"recipes: {{{short}: {{epochs: 3, learning_rate: 1.0e-5}}}}",
        "models": f'sources: {{{short}: {{locations: ["{source}"]}}}}, '
        f"models: {{{short}: {{source: {short}, format: {form}}}}}, and grid: {{models: [{short}]}}",
        "datasets": f'sources: {{{short}: {{locations: ["{source}"]}}}}, '
        f"datasets: {{{short}: {{source: {short}, {files}, columns: {{text: text, label: label}}, "
        f'labels: ["0", "1"]}}}}, and grid: {{datasets: [{short}]}}',
    }
    return f"To define it, add {definitions[kind]}"
