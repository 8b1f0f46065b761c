"""fairseq's --user-dir of the lab's runs: the architecture of its checkpoint, which fairseq does not know."""

from typing import Any

from fairseq.models import register_model_architecture
from fairseq.models.roberta import base_architecture


@register_model_architecture("roberta", "roberta_small")
def roberta_small(args: Any) -> None:
    """4 layers, d = ffn = 512, 8 heads, unless the command line says otherwise."""
    for name, value in (("layers", 4), ("embed_dim", 512), ("ffn_embed_dim", 512), ("attention_heads", 8)):
        setattr(args, f"encoder_{name}", getattr(args, f"encoder_{name}", value))
    base_architecture(args)
