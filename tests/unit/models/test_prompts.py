"""Prompts and answers as token ids: what the model sees is what its tokenizer makes of the whole text."""

import logging
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders_causal import make_passages, make_questions, train_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.data.texts import fill_template
from seedbed.models import prompts

SPLITS = ("train", "validation", "test")
KINDS = ("bloom", "llama", "gpt2")
ENDS = {"bloom": "</s>", "llama": "<|end_of_text|>", "gpt2": "<|endoftext|>"}
TEMPLATE = "Question : {question}\nRéponse :"
CONTEXTUAL = "{context}\nQuestion : {question}\nRéponse :"


class Case:
    """A dataset and a tokenizer on disk, which `tokenize` brings together."""

    def __init__(self, folder: Path, rows: list[dict[str, Any]], kind: str = "bloom", **changes: Any):
        context = rows[0]["context"] is not None
        self.folder = folder
        self.definition = {
            "template": CONTEXTUAL if context else TEMPLATE,
            "answer_prefix": " ",
            "columns": {
                "question": "question",
                "answer": "answer",
                "context": "context" if context else None,
            },
            "max_tokens": None,
            "overlong": "error",
        } | changes
        self.texts = {}
        for split in SPLITS:
            self.texts[split] = folder / f"{split}.jsonl"
            examples = [
                {
                    "id": f"{split}-{index}",
                    "text": fill_template(self.definition["template"], row["question"], row["context"]),
                    **row,
                }
                for index, row in enumerate(rows)
            ]
            write_jsonl(self.texts[split], examples)
        self.set_tokenizer(Tokenizer.from_str(train_tokenizer(kind)), ENDS[kind])
        self.describe(None)

    def set_tokenizer(self, tokenizer: Tokenizer, end: str) -> None:
        self.tokenizer, self.end = tokenizer, tokenizer.token_to_id(end)
        tokenizer.save(str(self.folder / "tokenizer.json"))

    def describe(self, positions: int | None) -> None:
        write_json(self.folder / "model.json", {"max_positions": positions, "eos": self.end})

    def tokenize(self, **changes: Any) -> dict[str, dict[str, Any]]:
        model = {"tokenizer": self.folder / "tokenizer.json", "definition": self.folder / "model.json"}
        limit = changes.pop("max_unknown_share", 1.0)
        definition = self.definition | changes
        return prompts.tokenize("qa", definition, self.texts, model, self.folder / "tokens", limit)

    def refused(self, **changes: Any) -> SeedbedError:
        with pytest.raises(SeedbedError) as caught:
            self.tokenize(**changes)
        assert not (self.folder / "tokens").exists()
        return caught.value

    def rows(self, split: str = "train") -> list[dict[str, Any]]:
        return read_jsonl(self.folder / "tokens" / f"{split}.jsonl")


# --- ids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_prompt_and_answer_are_the_ids_of_the_whole_text_and_the_end_token(tmp_path, kind):
    case = Case(tmp_path, make_questions(12), kind)
    found = case.tokenize()
    examples = read_jsonl(case.texts["train"])
    for row, example in zip(case.rows(), examples, strict=True):
        whole = case.tokenizer.encode(f"{example['text']} {example['answer']}").ids
        assert row["prompt"] + row["answer"] == [*whole, case.end]
        assert row["prompt"] == case.tokenizer.encode(example["text"]).ids
        assert case.tokenizer.decode(row["answer"][:-1]) == f" {example['answer']}"
        assert (row["id"], row["reference"]) == (example["id"], example["answer"])
        assert row["length"] == len(row["prompt"]) + len(row["answer"])
    assert found == read_json(tmp_path / "tokens" / "statistics.json")
    assert set(found) == set(SPLITS)


def test_examples_on_one_context_are_a_group(tmp_path):
    case = Case(tmp_path, make_passages(3, each=2))
    case.tokenize()
    contexts = [example["context"] for example in read_jsonl(case.texts["train"])]
    names = [row["group"] for row in case.rows()]
    assert len(names) > len(set(names)) > 1
    for one, name in zip(contexts, names, strict=True):
        assert [other == one for other in contexts] == [other == name for other in names]


def test_an_example_without_a_context_is_a_group_of_its_own(tmp_path):
    case = Case(tmp_path, make_questions(4))
    case.tokenize()
    assert [row["group"] for row in case.rows()] == [row["id"] for row in case.rows()]


def test_the_token_of_the_beginning_stands_where_the_tokenizer_puts_it(tmp_path):
    begin = Tokenizer.from_str(train_tokenizer("llama")).token_to_id("<|begin_of_text|>")
    for kind in KINDS:
        case = Case(tmp_path / kind, make_questions(3), kind)
        case.tokenize()
        assert [row["prompt"].count(begin) for row in case.rows()] == [kind == "llama"] * 3
        assert [row["prompt"][0] == begin for row in case.rows()] == [kind == "llama"] * 3


def test_what_the_tokenizer_puts_behind_a_text_stands_behind_the_answer_once(tmp_path):
    case = Case(tmp_path, make_questions(3), "llama")
    begin, end = (case.tokenizer.token_to_id(token) for token in ("<|begin_of_text|>", ENDS["llama"]))
    case.tokenizer.post_processor = processors.TemplateProcessing(
        single=f"<|begin_of_text|> $A {ENDS['llama']}",
        special_tokens=[("<|begin_of_text|>", begin), (ENDS["llama"], end)],
    )
    case.set_tokenizer(case.tokenizer, ENDS["llama"])
    case.tokenize()
    for row in case.rows():
        assert row["prompt"].count(end) == 0
        assert (row["answer"].count(end), row["answer"][-1]) == (1, end)


def test_special_tokens_written_in_a_text_are_text(tmp_path):
    rows = make_questions(3)
    rows[0]["answer"] = "le </s> noir"
    case = Case(tmp_path, rows)
    case.tokenize()
    row = case.rows()[0]
    assert row["answer"].count(case.end) == 1
    assert case.tokenizer.decode(row["answer"][:-1]) == " le </s> noir"


def test_special_tokens_named_by_the_template_are_special(tmp_path, caplog):
    case = Case(tmp_path, make_questions(3), "llama", template="{question}<|end_of_text|>Réponse :")
    with caplog.at_level(logging.INFO):
        case.tokenize()
    assert [row["prompt"].count(case.end) for row in case.rows()] == [1, 1, 1]
    assert "<|end_of_text|>" in caplog.text


@pytest.mark.parametrize(
    ("template", "prefix"), [("Question : {question}\nRéponse : ", ""), ("{question} Répon", "se : ")]
)
def test_a_prompt_that_merges_with_the_answer_is_an_error(tmp_path, template, prefix):
    error = Case(tmp_path, make_questions(3), template=template, answer_prefix=prefix).refused()
    assert "the prompt's end and the answer's beginning merge" in error.what
    assert "train-0" in error.where
    assert 'answer_prefix " "' in error.hint


def test_a_file_that_is_no_tokenizer_is_an_error(tmp_path):
    case = Case(tmp_path, make_questions(3))
    (tmp_path / "tokenizer.json").write_text('{"model": 1}', encoding="utf-8")
    assert "not a tokenizer.json" in case.refused().what


def test_padding_and_truncation_of_the_file_are_not_followed(tmp_path):
    case = Case(tmp_path, make_questions(3))
    case.tokenizer.enable_truncation(4)
    case.tokenizer.enable_padding(length=90)
    case.set_tokenizer(case.tokenizer, "</s>")
    case.tokenize()
    assert {row["length"] for row in case.rows()}.isdisjoint({4, 5, 90, 91})
    assert case.tokenizer.decode(case.rows()[0]["prompt"]) == read_jsonl(case.texts["train"])[0]["text"]


def test_a_byte_order_mark_before_a_tokenizer_is_named(tmp_path):
    case = Case(tmp_path, make_questions(3))
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert case.refused().found == "a byte order mark before the JSON"


def test_unknown_tokens_are_counted_and_named(tmp_path, caplog):
    rows = make_questions(3)
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, "Question": 2, ":": 3}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece()
    case = Case(tmp_path, rows)
    case.set_tokenizer(tokenizer, "</s>")
    case.describe(None)
    found = case.tokenize()["train"]
    words = [f"{TEMPLATE.format(question=row['question'])} {row['answer']}".split() for row in rows]
    unknown = [sum(word not in ("Question", ":") for word in each) for each in words]
    assert [row["unknown"] for row in case.rows()] == unknown
    assert found["unknown"] == sum(unknown)
    counts = Counter(word for each in words for word in each if word not in ("Question", ":"))
    first, count = counts.most_common(1)[0]
    assert (
        f"train: the tokenizer does not know, most frequent first: {first!r} ({count} times)" in caplog.text
    )
    share = sum(unknown) / sum(len(each) + 1 for each in words)
    assert found["unknown_share"] == pytest.approx(share)
    shutil.rmtree(tmp_path / "tokens")
    error = case.refused(max_unknown_share=0.01)
    assert f"{share:.1%} of the tokens in the split 'train' are unknown to the model" in str(error)
    assert "raise checks.max_unknown_share" in str(error)
    case.tokenize(max_unknown_share=share)


def test_bytes_know_every_character(tmp_path):
    rows = make_questions(3)
    rows[1]["answer"] = "日本 😀"
    assert Case(tmp_path, rows).tokenize()["test"]["unknown_share"] == 0


# --- statistics and limits ----------------------------------------------------------------------------------


def test_statistics_by_hand(tmp_path):
    case = Case(tmp_path, make_questions(5))
    found = case.tokenize()["validation"]
    prompt, answer = ([len(row[part]) for row in case.rows("validation")] for part in ("prompt", "answer"))
    assert found == {
        "examples": 5,
        "limit": None,
        "prompt_tokens": {"median": sorted(prompt)[2], "longest": max(prompt), "total": sum(prompt)},
        "answer_tokens": {"median": sorted(answer)[2], "longest": max(answer), "total": sum(answer)},
        "longest": max(a + b for a, b in zip(prompt, answer, strict=True)),
        "cut": 0,
        "answers_cut": 0,
        "dropped": 0,
        "unknown": 0,
        "unknown_share": 0.0,
    }


@pytest.mark.parametrize(
    ("asked", "positions", "limit"), [(None, None, None), (None, 512, 512), (300, 512, 300), (300, None, 300)]
)
def test_the_limit_is_the_datasets_or_the_models(tmp_path, asked, positions, limit):
    case = Case(tmp_path, make_questions(3))
    case.describe(positions)
    assert {found["limit"] for found in case.tokenize(max_tokens=asked).values()} == {limit}


def test_a_limit_above_the_models_positions_is_an_error(tmp_path):
    case = Case(tmp_path, make_questions(3))
    case.describe(256)
    error = case.refused(max_tokens=257)
    assert "datasets.qa.max_tokens" in error.where
    assert error.found == "257; the model has 256"


def lengths(folder: Path, rows: list[dict[str, Any]]) -> list[int]:
    case = Case(folder, rows)
    case.tokenize()
    return [row["length"] for row in case.rows()]


def test_an_example_of_exactly_the_limit_stays_and_a_longer_one_is_an_error(tmp_path):
    rows = make_questions(4)
    rows[2]["question"] = "Et " * 60 + "?"
    longest = max(lengths(tmp_path / "free", rows))
    case = Case(tmp_path, rows)
    assert case.tokenize(max_tokens=longest)["train"]["longest"] == longest
    error = Case(tmp_path / "short", rows).refused(max_tokens=longest - 1)
    assert error.what == "an example is longer than the limit"
    assert "train-2" in error.where
    assert f"{longest} tokens with the end token, at most {longest - 1}" in error.found
    assert "overlong: drop" in error.hint
    assert "cut" not in error.hint  # there is no context


def test_the_models_positions_are_a_limit_too(tmp_path):
    case = Case(tmp_path, make_passages(3))
    case.describe(20)
    error = case.refused()
    assert error.what.startswith("an example is longer than the limit (and 8 more")
    assert "the model's positions" in error.found
    assert "overlong: cut" in error.hint


@pytest.mark.parametrize("overlong", ["error", "cut", "drop"])
@pytest.mark.parametrize(
    ("asked", "positions", "begins"),
    [
        (None, 5, "take a shorter template or a model with more positions"),
        (5, 5, "take a shorter template or a model with more positions"),
        (5, 512, "raise max_tokens (to 512 at most, the model's positions)"),
        (5, None, "raise max_tokens"),
    ],
)
def test_what_is_proposed_raises_the_limit_that_binds(tmp_path, overlong, asked, positions, begins):
    case = Case(tmp_path, make_passages(3))
    case.describe(positions)
    hint = case.refused(max_tokens=asked, overlong=overlong).hint
    assert hint.startswith(begins)
    assert ("max_tokens" in hint, "positions" in hint) == (
        begins.startswith("raise"),
        positions is not None,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_are_cut_at_a_tokens_end_and_nothing_else(tmp_path, kind, caplog):
    rows = make_passages(4)
    case = Case(tmp_path, rows, kind)
    case.tokenize()
    whole = case.rows()
    limit = max(row["length"] for row in whole) - 8
    with caplog.at_level(logging.WARNING):
        found = case.tokenize(max_tokens=limit, overlong="cut")["train"]
    changed = 0
    for row, before, example in zip(case.rows(), whole, read_jsonl(case.texts["train"]), strict=True):
        assert len(row["prompt"]) + len(row["answer"]) <= limit
        assert row["answer"] == before["answer"]
        assert row["length"] == before["length"]
        text = case.tokenizer.decode(row["prompt"])
        context, rest = text.split("\nQuestion : ")
        assert example["context"].startswith(context)
        assert rest == f"{example['question']}\nRéponse :"
        changed += row["prompt"] != before["prompt"]
        if row["prompt"] != before["prompt"]:
            assert context != example["context"]
            assert row["length"] > limit  # none was cut that fitted
            assert len(row["prompt"]) + len(row["answer"]) > limit - 4  # nor by more than was needed
    assert found["cut"] == changed > 0
    assert f"shortened the context of {changed} of 12 examples" in caplog.text


def test_answers_that_no_longer_stand_in_the_context_are_counted(tmp_path):
    row = {"question": "Quand ?", "context": "Un début. " * 10 + "En 1789.", "answer": "1789"}
    same = {"question": "Quoi ?", "context": "Un début. " * 10 + "En 1789.", "answer": "début"}
    limit = max(lengths(tmp_path / "free", [row, same])) - 10
    found = Case(tmp_path, [row, same]).tokenize(max_tokens=limit, overlong="cut")["train"]
    assert (found["cut"], found["answers_cut"]) == (2, 1)


def test_a_cut_that_would_leave_no_context_to_cut_is_an_error(tmp_path):
    rows = make_passages(2)
    rows[3]["question"] = "Et " * 100 + "?"
    error = Case(tmp_path, rows).refused(max_tokens=90, overlong="cut")
    assert error.what == "an example is longer than the limit even without its context"
    assert "train-3" in error.where


def test_long_examples_can_be_left_out_of_every_split_and_are_told(tmp_path, caplog):
    rows = make_questions(6)
    rows[2]["question"] = "Et " * 100 + "?"
    case = Case(tmp_path, rows)
    with caplog.at_level(logging.WARNING):
        found = case.tokenize(max_tokens=90, overlong="drop")
    for split in SPLITS:
        assert (found[split]["examples"], found[split]["dropped"]) == (5, 1)
        assert [row["id"] for row in case.rows(split)] == [f"{split}-{n}" for n in (0, 1, 3, 4, 5)]
        assert f"qa, {split}: left out 1 of 6 examples" in caplog.text
        assert found[split]["longest"] > 90


def test_a_split_of_long_examples_alone_is_an_error(tmp_path):
    error = Case(tmp_path, make_questions(6)).refused(max_tokens=5, overlong="drop")
    assert error.what.startswith("nearly all train examples")
