"""Builders of what splits texts: SentencePiece models with their dict.txt, and ids by hand."""

from pathlib import Path

import sentencepiece

from seedbed.models.sentencepiece_models import SentencePiece


def write_model(folder: Path, model: bytes, words: list[str]) -> tuple[SentencePiece, Path]:
    """The model as a file, and a dict.txt of the words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.model").write_bytes(model)
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    return SentencePiece(folder / "sentencepiece.model"), folder / "dict.txt"


def reference(model: bytes, words: list[str], text: str) -> list[int]:
    """Ids by hand: SentencePiece's pieces, looked up in the list of words, which starts at 4."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
    return [0, *(4 + words.index(piece) if piece in words else 3 for piece in pieces), 2]
