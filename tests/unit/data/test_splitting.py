"""Drawing a validation split: stratified, seeded, by text, and refused where it would be too small."""

import random

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.data.splitting import class_sizes, draw_validation

LABELS = ("neg", "pos")


def make_examples(*classes):
    return [
        {"id": f"train-{index}", "text": f"texte {index}", "label": label}
        for index, label in enumerate(classes)
    ]


def draw(examples, size, seed=0):
    return draw_validation("d", examples, LABELS, size, seed)


def ids(examples):
    return [example["id"] for example in examples]


def counts(examples):
    return [sum(example["label"] == label for example in examples) for label in range(len(LABELS))]


@pytest.mark.parametrize(
    ("members", "total", "sizes"),
    [
        ((900, 900), 200, [100, 100]),
        ((6, 4), 5, [3, 2]),
        ((5, 5), 3, [2, 1]),  # 1.5 each: of equal remainders the first class's goes first
        ((70, 20, 10), 9, [6, 2, 1]),  # 6.3, 1.8, 0.9
        ((50, 27, 23), 10, [5, 3, 2]),  # 5, 2.7, 2.3
        ((4, 0), 2, [2, 0]),
    ],
)
def test_largest_remainder(members, total, sizes):
    classes = [index for index, count in enumerate(members) for _ in range(count)]
    assert class_sizes(classes, len(members), total) == sizes


def test_draw_is_stratified_and_complete():
    examples = make_examples(*[0] * 60, *[1] * 40)
    train, validation = draw(examples, 20)
    assert counts(validation) == [12, 8]
    assert counts(train) == [48, 32]
    # both in file order, none lost and none twice
    assert ids(train) == [one for one in ids(examples) if one not in ids(validation)]
    assert ids(validation) == [one for one in ids(examples) if one not in ids(train)]


def test_share():
    assert len(draw(make_examples(*[0, 1] * 50), 0.2)[1]) == 20
    assert len(draw(make_examples(*[0, 1] * 50), 0.055)[1]) == 6  # 5.5


def test_seed_draws_another_split():
    examples = make_examples(*[0, 1] * 50)
    first = draw(examples, 20)[1]
    assert draw(examples, 20)[1] == first
    other = draw(examples, 20, seed=1)[1]
    assert ids(other) != ids(first)
    assert counts(other) == counts(first)


def test_draw_is_known():
    # the draw is part of a published experiment's definition: another version must not change it
    assert ids(draw(make_examples(*[0, 1] * 10), 4)[1]) == ["train-1", "train-10", "train-15", "train-18"]


def test_order_of_the_file_does_not_matter():
    examples = make_examples(*[0, 1] * 50)
    shuffled = random.Random(0).sample(examples, len(examples))
    assert set(ids(draw(shuffled, 20)[1])) == set(ids(draw(examples, 20)[1]))


def test_identical_texts_stay_together():
    examples = make_examples(*[0, 1] * 50)
    for index, example in enumerate(examples):
        # 50 texts, each twice with one label, once in capitals and with more spaces
        example["text"] = f"Texte {index % 50}" if index < 50 else f" TEXTE  {index % 50}"
    for seed in range(5):
        train, validation = draw(examples, 20, seed)
        assert counts(validation) == [10, 10]
        assert not {e["text"].casefold().split()[1] for e in train} & {
            e["text"].casefold().split()[1] for e in validation
        }


def test_identical_texts_of_both_labels_stay_together():
    examples = make_examples(*[0, 1] * 50)
    for index, example in enumerate(examples):
        example["text"] = f"texte {index // 2}"
    train, validation = draw(examples, 20)
    assert counts(validation) == [10, 10]
    assert not {e["text"] for e in train} & {e["text"] for e in validation}


def test_groups_that_do_not_fit_are_told(caplog):
    examples = make_examples(*[0, 1] * 30)
    for example in examples:
        example["text"] = f"texte {int(example['id'][6:]) // 6}"  # groups of three and three
    _, validation = draw(examples, 16)
    assert counts(validation) == [6, 6]
    assert "drew neg: 6, pos: 6 for validation where neg: 8, pos: 8 were asked for" in caplog.text


@pytest.mark.parametrize(
    ("classes", "size", "told"),
    [
        ([0] * 94 + [1] * 6, 10, "drawn would be neg: 9, pos: 1"),
        ([0, 1] * 10, 3, "drawn would be neg: 2, pos: 1"),
        ([0, 1] * 10, 0.01, "drawn would be neg: 0, pos: 0"),
        ([0] * 20, 10, "drawn would be neg: 10, pos: 0"),
    ],
)
def test_two_examples_a_class(classes, size, told):
    with pytest.raises(SeedbedError, match="fewer than 2 examples of a class") as caught:
        draw(make_examples(*classes), size)
    assert told in str(caught.value)
    assert "config, datasets.d.validation_split.size" in str(caught.value)


@pytest.mark.parametrize("size", [20, 21, 4.5])
def test_sizes_that_cannot_be_drawn(size):
    with pytest.raises(SeedbedError, match=f"cannot be drawn(.|\n)*found: {size:g}, of 20 examples"):
        draw(make_examples(*[0, 1] * 10), size)
