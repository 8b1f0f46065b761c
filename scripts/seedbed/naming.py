"""What fairseq and Transformers call the same thing: tensors of the encoder, ids of special tokens."""

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
