"""Names of RoBERTa's tensors in fairseq and in Transformers, and the ids of special tokens."""

ENCODER, HEAD = "encoder.sentence_encoder", "encoder.lm_head"

# fairseq's numbering, which the converted models keep
BOS, PAD, EOS, UNK = range(4)

_EMBEDDINGS = {
    "embeddings.word_embeddings.": "embed_tokens.",
    "embeddings.position_embeddings.": "embed_positions.",
    "embeddings.LayerNorm.": "layernorm_embedding.",
}
_LAYER = {
    "attention.self.query.": "self_attn.q_proj.",
    "attention.self.key.": "self_attn.k_proj.",
    "attention.self.value.": "self_attn.v_proj.",
    "attention.output.dense.": "self_attn.out_proj.",
    "attention.output.LayerNorm.": "self_attn_layer_norm.",
    "intermediate.dense.": "fc1.",
    "output.dense.": "fc2.",
    "output.LayerNorm.": "final_layer_norm.",
}


def fairseq_name(name: str) -> str | None:
    """fairseq's name (below `encoder.sentence_encoder.`) of a tensor of Transformers' RobertaModel.

    None for the token-type embeddings, which fairseq does not have.

    Raises:
        KeyError: the name is not one of RobertaModel's encoder.
    """
    if name.startswith("embeddings.token_type_embeddings."):
        return None
    for prefix, replacement in _EMBEDDINGS.items():
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    if name.startswith("encoder.layer."):
        _, _, index, rest = name.split(".", 3)
        for prefix, replacement in _LAYER.items():
            if rest.startswith(prefix):
                return f"layers.{index}.{replacement}{rest.removeprefix(prefix)}"
    raise KeyError(f"{name} is no tensor of RobertaModel's encoder")


def huggingface_names(layers: int) -> dict[str, str]:
    """fairseq's name -> transformers' name, for all weights of a RoBERTa with its language-model head."""
    kinds = ("weight", "bias")
    names = {
        f"{ENCODER}.{ours}{kind}": f"roberta.{theirs}{kind}"
        for theirs, ours in _EMBEDDINGS.items()
        for kind in (kinds if "LayerNorm" in theirs else ("weight",))
    }
    for layer in range(layers):
        for theirs, ours in _LAYER.items():
            for kind in kinds:
                inside = f"roberta.encoder.layer.{layer}.{theirs}{kind}"
                names[f"{ENCODER}.layers.{layer}.{ours}{kind}"] = inside
    for part in ("dense", "layer_norm"):
        names |= {f"{HEAD}.{part}.{kind}": f"lm_head.{part}.{kind}" for kind in kinds}
    # the matrix is tied to the token embeddings
    return names | {f"{HEAD}.weight": "lm_head.decoder.weight", f"{HEAD}.bias": "lm_head.bias"}
