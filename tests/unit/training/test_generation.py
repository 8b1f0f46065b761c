"""Answers: greedy, alike in every batch, ended and scored."""

import math

import numpy as np
import pytest
import torch
from builders_causal import make_causal_model, make_questions
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from seedbed.training.generation import Answered, Limits, Questions, answer_scores, generate_answers

KINDS = ("bloom", "llama", "gpt2")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Of each kind a model and prompts of very different lengths."""
    made = {}
    for kind in KINDS:
        folder = make_causal_model(tmp_path_factory.mktemp(kind), kind, positions=64)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        texts = [
            row["question"] * (1 + index % 3) if kind == "bloom" else row["question"]
            for index, row in enumerate(make_questions(19))
        ]
        prompts = [tokenizer.encode(text).ids[: 55 - 3 * (index % 9)] for index, text in enumerate(texts)]
        made[kind] = AutoModelForCausalLM.from_pretrained(folder).eval(), prompts
    return made


def greedy(model, prompt, limits) -> list[int]:
    """One token after the other, without batches, padding or a cache."""
    ids = list(prompt)
    for _ in range(limits.of(prompt)):
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        token = int(scores.argmax())
        if token == limits.eos:
            break
        ids.append(token)
    return ids[len(prompt) :]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [1, 8])
def test_answers_do_not_depend_on_the_batch_and_are_the_most_probable_tokens(models, kind, batch_size):
    model, prompts = models[kind]
    limits = Limits(model.config.eos_token_id, model.config.pad_token_id, 12)
    answers = generate_answers(model, prompts, limits, batch_size)
    assert answers == [greedy(model, prompt, limits) for prompt in prompts]
    assert len({tuple(answer) for answer in answers}) > 3
    assert model.generation_config.do_sample  # the model's own wish, which is left to it


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_ends_at_the_end_token_which_may_also_pad(models, kind):
    model, prompts = models[kind]
    free = generate_answers(model, prompts, Limits(399, model.config.pad_token_id, 12), 8)
    ends = free[0][5]  # taken for the end token, so that some answers end early
    limits = Limits(ends, ends, 12)
    answers = generate_answers(model, prompts, limits, 8)
    assert answers == [row[: row.index(ends)] if ends in row else row for row in free]
    assert len(set(map(len, answers))) > 1


def test_answers_stop_where_the_model_has_no_more_positions(models):
    model, prompts = models["gpt2"]
    limits = Limits(399, model.config.pad_token_id, 60, 64)
    answers = generate_answers(model, prompts, limits, 8)
    assert [len(answer) for answer in answers] == [min(60, 64 - len(prompt)) for prompt in prompts]
    assert len(set(map(len, answers))) > 1
    assert answers == generate_answers(model, prompts, limits, 1)
    full = [1] * 64
    assert generate_answers(model, [full], limits, 8) == [[]]


def test_a_signal_can_stop_between_batches(models):
    model, prompts = models["bloom"]
    calls = []
    limits = Limits(model.config.eos_token_id, model.config.pad_token_id, 2)
    generate_answers(model, prompts, limits, 8, lambda: calls.append(1))
    assert len(calls) == math.ceil(len(prompts) / 8)


def test_scores_are_those_of_squad_as_fractions():
    answers = ["la Loire", "LA LOIRE.", "le fleuve Loire", "", "the Loire", "x"]
    references = ["la Loire", "la  Loire", "la Loire", "la Loire", "Loire", ""]
    scores = answer_scores(answers, references)
    assert [score["exact_match"] for score in scores] == [1, 1, 0, 0, 1, 0]
    # of 3 and 2 words one is shared: precision 1/3, recall 1/2
    assert [score["f1"] for score in scores] == pytest.approx([1, 1, 0.4, 0, 1, 0])


SAME_ANSWERS = [
    ("", ""),
    (" ", "\u200b"),
    ("A.", "A"),
    ("the A", "a"),
    ("(A)", "A"),
    ("U.S.", "us"),
    ("a-b", "ab"),
    ("the cat.", "Cat"),
    ("an apple", "apple"),
    ("a cat", "cat"),
    ("\u201cThe cat\u201d", "cat"),
    ("the \u00abcat\u00bb of an aunt", "cat of aunt"),
    ("A) yes", "A. yes"),
    ("l\u2019amour", "l'amour"),
    ("l\u02bcamour", "l'amour"),
    ("l\u2032amour", "l'amour"),
    ("e\u0301te\u0301", "\u00e9t\u00e9"),
    ("E\u0301TE\u0301", "\u00e9t\u00e9"),
    ("\u00ab\u00a0oui\u00a0\u00bb", '"oui"'),
    ("\u201coui\u201d", "oui"),
    ("oui\u2026", "oui..."),
    ("10\u00a0000", "10 000"),
    ("\uff11\uff15", "15"),
    ("\ufb01n", "fin"),
    ("1914\u20131918", "1914-1918"),
    ("\u22125", "-5"),
    ("(-5)", "\u22125"),
    ("5.", "5"),
    ("le 5,", "le 5"),
    ("50\u00a0%", "50%"),
    ("3\u00a0\u20ac", "3\u20ac"),
    ("a + b", "a+b"),
    ("co\u00adop\u00e9rer", "coop\u00e9rer"),
    ("?", " ?"),
]
OTHER_ANSWERS = [
    ("", "A"),
    ("the", "A"),
    ("a", "an"),
    ("", "the"),
    (".", ""),
    ("%", "$"),
    ("?", "!"),
    ("A", "A+"),
    ("A+", "+"),
    ("vitamine A", "vitamine"),
    ("A B", "B"),
    ("A) yes", "yes"),
    ("a + bc", "+ bc"),
    ("l'a dit", "l' dit"),
    ("-5", "5"),
    ("x = -5", "x = 5"),
    ("\u22125", "5"),
    ("-.5", ".5"),
    (".5", "5"),
    ("+5", "5"),
    ("-\u221e", "\u221e"),
    ("-$5", "$5"),
    ("3.14", "314"),
    ("1,5", "15"),
    ("1.5", "15"),
    ("10:30", "1030"),
    ("1/2", "12"),
    ("1-2", "12"),
    ("\u00bd", "12"),
    ("C++", "C"),
    ("C#", "C"),
    ("x^2", "x2"),
    ("10\u00b2", "102"),
    ("$5", "\u20ac5"),
    ("50 %", "50"),
    ("m/s", "ms"),
    ("c\u0153ur", "coeur"),
    ("\u00e9t\u00e9", "ete"),
    ("le chat", "chat"),
]


@pytest.mark.parametrize(("answer", "reference"), SAME_ANSWERS)
def test_spelling_that_changes_no_answer_does_not_count(answer, reference):
    right = {"exact_match": 1, "f1": 1}
    assert answer_scores([answer, reference], [reference, answer]) == [right, right]


@pytest.mark.parametrize(("answer", "reference"), OTHER_ANSWERS)
def test_answers_that_differ_in_more_than_spelling_do_not_match(answer, reference):
    first, second = answer_scores([answer, reference], [reference, answer])
    assert first == second
    assert first["exact_match"] == 0
    assert first["f1"] < 1


def test_f1_is_zero_where_one_side_has_no_words_and_counts_repeated_words():
    scores = answer_scores(["", "oui", "oui oui oui", "-5 m", "A) oui"], ["A", "", "oui non", "5 m", "A"])
    # precision 1/3, recall 1/2; precision and recall 1/2; precision 1/2, recall 1
    assert [score["f1"] for score in scores] == [0, 0, 0.4, 0.5, 0.666667]


def test_rows_say_what_was_asked_for_and_what_was_generated(tmp_path):
    folder = make_causal_model(tmp_path, "bloom")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    eos = tokenizer.token_to_id("</s>")
    texts = ["la Loire", "le comté"]
    answers = [[*tokenizer.encode(f" {text}").ids, eos] for text in texts]
    split = Questions(["a", "b"], [[5, 6], [7]], answers, texts, ["a", "b"])
    predictor = Answered(
        lambda split: np.array([[2.0, 1.0], [np.nan, 1.0]]),
        lambda prompts: [tokenizer.encode(" la Loire ").ids for _ in prompts],
        folder / "tokenizer.json",
    )
    final, details = predictor.final(split)
    assert final == pytest.approx({"exact_match": 0.5, "f1": 0.5})
    first, second = predictor.rows("test", split, predictor.outputs(split), details)
    assert list(first) == list(predictor.columns)
    assert first["answer"] == "la Loire"
    assert first["reference"] == "la Loire"
    assert float(first["loss"]) == pytest.approx(2 / len(answers[0]))
    assert float(first["token_accuracy"]) == pytest.approx(1 / len(answers[0]))
    assert (first["tokens"], first["exact_match"], first["f1"]) == (len(answers[0]), "1", "1")
    assert (second["loss"], second["token_accuracy"], second["exact_match"]) == (None, "0", "0")
