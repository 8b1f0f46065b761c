"""The embedded questions and answers: form, what their card says of them, and splits that share no fact."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "resources" / "questions_fr"
SIZES = {"train": 205, "validation": 40, "test": 40}
TITLE = re.compile(r"« (.+?) »")
# what a question asks for, by its form; each kind occurs in every split
KINDS = {
    "genre": re.compile(r"(Quel est le|À quel|De quel) genre\b"),
    "century": re.compile(r"(De|En|À) quel siècle\b"),
    "language": re.compile(r"(Quelle est la langue originale|Dans quelle langue)\b"),
    "author": re.compile(r"(Qui (a écrit|est l'auteur)|De qui est)\b"),
    "yes or no": re.compile(r"(« .+ »|Un \w+) (est|sont|date|datent|a|ont|compte|s'écrit)-"),
    "word": re.compile(r"(Comment appelle-t-on|Quel mot désigne|Quel est le (nom|numéro))\b"),
}
# which property of a work a question with the answer yes or no is about
ASKED = {
    "century": re.compile(r"\bsiècle \?$"),
    "language": re.compile(r"\ben \w+ \?$"),
    "author": re.compile(r"-(il|elle|ils|elles) de [A-ZÉ]"),
    "genre": re.compile(r"-(il|elle|ils|elles) une? "),
}


def read(split):
    """(question, answer) of every line of a split; text that is not UTF-8 or not JSON raises."""
    lines = (FOLDER / f"{split}.jsonl").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""  # the file ends with a line end
    examples = [json.loads(line) for line in lines]
    assert all(example.keys() == {"question", "answer"} for example in examples)
    return [(example["question"], example["answer"]) for example in examples]


def everything():
    return [(split, question, answer) for split in SIZES for question, answer in read(split)]


def kind(question):
    """The only kind whose form the question has."""
    (found,) = [name for name, form in KINDS.items() if form.match(question)]
    return found


def fact(question):
    """(work, property) that a question asks for, or the question where it is about no work."""
    title = TITLE.search(question)
    if not title:
        return question
    asked = kind(question)
    if asked == "yes or no":
        asked = next(name for name, form in ASKED.items() if form.search(question))
    return title[1], asked


@pytest.mark.parametrize(("split", "size"), SIZES.items())
def test_every_split_has_its_size_and_every_kind_of_question(split, size):
    examples = read(split)
    assert len(examples) == size
    counts = Counter(kind(question) for question, _ in examples)
    assert counts.keys() == KINDS.keys()
    assert min(counts.values()) >= 6


def test_no_question_and_no_fact_stands_twice():
    questions = [" ".join(re.findall(r"\w+", question.lower())) for _, question, _ in everything()]
    assert len(set(questions)) == len(questions) == sum(SIZES.values())
    facts = Counter(fact(question) for _, question, _ in everything())
    assert [name for name, count in facts.items() if count > 1] == []


def test_answers_are_short_and_questions_are_french_sentences():
    for _, question, answer in everything():
        assert 1 <= len(answer.split()) <= 6, answer
        assert answer == " ".join(answer.split()), answer
        assert not re.search(r"[.!?]$", answer), answer
        assert question == " ".join(question.split()), question
        assert re.match(r"(« )?[A-ZÀÉŒ]", question), question
        assert question.endswith(" ?"), question
        assert len(re.findall("[?]", question)) == 1, question


def test_punctuation_is_french_and_of_one_kind():
    for _, question, answer in everything():
        text = f"{question} {answer}"
        assert not re.search(r"[\"“”’`\u00a0\u202f\ufffd]", text), text
        assert len(re.findall("« ", text)) == text.count("«") == text.count("»"), text
        assert len(re.findall(" »", text)) == text.count("»"), text
        assert not re.search(r"\b(de|que) « [AEIOUÉŒHYaeiouéœhy]", text), text  # d'« Hernani »


def test_no_answer_is_frequent_enough_to_be_given_blindly():
    assert Counter(answer for *_, answer in everything()).most_common(1)[0][1] < 0.15 * sum(SIZES.values())
    for split, size in SIZES.items():
        counts = Counter(answer for _, answer in read(split))
        assert counts.most_common(1)[0][1] < 0.15 * size
        assert counts["oui"] == counts["non"]


def test_the_card_tells_the_sizes_and_the_answers_that_training_has():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    known = {answer for _, answer in read("train")}
    for split in SIZES:
        answers = [answer for _, answer in read(split)]
        cells = [len(answers), len(set(answers)), sum(answer in known for answer in answers)]
        assert f"| {split}.jsonl | {' | '.join(map(str, cells))} |" in card
    kinds = Counter(kind(question) for _, question, _ in everything())
    for name, count in kinds.items():
        assert re.search(rf"^\| {name} \| {count} \|", card, re.MULTILINE), name
