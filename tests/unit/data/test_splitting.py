"""Drawing a validation split: stratified, seeded, by text, and refused where it would be too small."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.core.errors import SeedbedError
from seedbed.data.splitting import class_sizes, connected, draw_groups, draw_validation
from seedbed.data.texts import normalise

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


@given(st.lists(st.integers(0, 3), min_size=1), st.data())
def test_each_class_gets_its_share_to_within_one_example(classes, data):
    total = data.draw(st.integers(0, len(classes)))
    sizes = class_sizes(classes, 4, total)
    assert sum(sizes) == total
    for label, size in enumerate(sizes):
        members = classes.count(label)
        assert size <= members
        assert abs(size - total * members / len(classes)) < 1


GROUPS = st.dictionaries(
    st.text(max_size=3), st.lists(st.integers(0, 1), min_size=1, max_size=4), max_size=12
)


@given(GROUPS, st.lists(st.integers(0, 9), min_size=2, max_size=2), st.integers(0, 99))
def test_groups_are_drawn_whole_while_they_fit(groups, wanted, seed):
    drawn = draw_groups(groups, wanted, seed)
    taken = collections.Counter(label for name in drawn for label in groups[name])
    assert all(taken[label] <= wanted[label] for label in (0, 1))
    assert len(set(drawn)) == len(drawn)
    for name in groups.keys() - drawn:  # what is left would have been too much
        needed = collections.Counter(groups[name])
        assert any(taken[label] + needed[label] > wanted[label] for label in needed)
    assert draw_groups(dict(reversed(groups.items())), wanted, seed) == drawn


TEXTS = st.sampled_from(["texte", " TEXTE  ", "texte\u00a0", *(f"autre {number}" for number in range(9))])


@given(
    st.lists(st.tuples(TEXTS, st.integers(0, 1)), min_size=8, max_size=40), st.floats(0.2, 0.8), st.randoms()
)
def test_a_draw_divides_the_texts_whatever_their_order(rows, size, order):
    examples = [
        {"id": f"train-{index}", "text": text, "label": label} for index, (text, label) in enumerate(rows)
    ]
    try:
        train, validation = draw(examples, size)
    except SeedbedError:
        return
    assert [row for row in examples if row in train] == train
    assert [row for row in examples if row in validation] == validation
    assert sorted(ids(train) + ids(validation)) == sorted(ids(examples))
    # identical texts, of whichever labels, stay together
    assert not {normalise(row["text"]) for row in train} & {normalise(row["text"]) for row in validation}
    wanted = class_sizes([row["label"] for row in examples], 2, round(size * len(examples)))
    assert all(2 <= count <= most for count, most in zip(counts(validation), wanted, strict=True))
    order.shuffle(examples)
    assert set(ids(draw(examples, size)[1])) == set(ids(validation))


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


def test_a_group_of_both_labels_that_fits_one_alone_is_not_drawn():
    for seed in range(20):
        groups = {"mixed": [0, 0, 0, 1], "a": [0], "b": [1], "c": [1]}
        assert "mixed" not in draw_groups(groups, [1, 2], seed)


def test_groups_that_do_not_fit_are_told(caplog):
    examples = make_examples(*[0, 1] * 30)
    for example in examples:
        example["text"] = f"texte {int(example['id'][6:]) // 6}"  # groups of three and three
    _, validation = draw(examples, 16)
    assert counts(validation) == [6, 6]
    assert "drew neg: 6, pos: 6 for validation instead of the requested neg: 8, pos: 8" in caplog.text


@pytest.mark.parametrize(
    ("classes", "size", "told"),
    [
        ([0] * 94 + [1] * 6, 10, "the draw gives neg: 9, pos: 1"),
        ([0, 1] * 10, 3, "the draw gives neg: 2, pos: 1"),
        ([0, 1] * 10, 0.01, "the draw gives neg: 0, pos: 0"),
        ([0] * 20, 10, "the draw gives neg: 10, pos: 0"),
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


# --- clusters ---


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghij"), st.integers(0, 1), TEXTS), min_size=1, max_size=40),
    st.integers(0, 99),
)
def test_no_cluster_and_no_text_is_on_both_sides(rows, seed):
    # four examples of two classes in clusters of their own, so that each class can be drawn
    own = [(f"own {index}", index % 2, f"texte propre {index}") for index in range(8)]
    examples = [
        {"id": f"train-{index}", "text": text, "label": label, "cluster": cluster}
        for index, (cluster, label, text) in enumerate([*rows, *own])
    ]
    train, validation = draw(examples, min(8, len(examples) - 1), seed)
    assert sorted(ids(train) + ids(validation)) == sorted(ids(examples))
    for of in (lambda example: example["cluster"], lambda example: normalise(example["text"])):
        assert not {of(example) for example in train} & {of(example) for example in validation}
    backwards = draw(examples[::-1], min(8, len(examples) - 1), seed)[1]
    assert sorted(ids(backwards)) == sorted(ids(validation))


def test_clusters_of_one_example_are_stratified_as_examples_are():
    examples = [example | {"cluster": example["id"]} for example in make_examples(*[0, 1, 1] * 30)]
    assert counts(draw(examples, 30)[1]) == [10, 20]


def test_large_clusters_of_both_classes_come_as_near_as_they_can():
    # ten clusters of ten; nine have four of one class and six of the other, so that none fits 10 and 10
    examples = [
        example | {"cluster": f"author {index // 10}"}
        for index, example in enumerate(make_examples(*[0, 0, 0, 0, 1, 1, 1, 1, 1, 1] * 10))
    ]
    train, validation = draw(examples, 20)
    assert counts(validation) == [8, 12]
    assert len({example["cluster"] for example in validation}) == 2
    assert len(train) == 80


def test_equal_texts_join_clusters():
    assert connected(["b", "a", "c", "d"], ["x", "y", "y", "z"]) == ["b", "a", "a", "d"]
    assert connected(["b", "a", "c", "c"], ["x", "y", "y", "x"]) == ["a", "a", "a", "a"]


def test_a_class_that_its_clusters_keep_out_is_told_with_the_reason():
    examples = [example | {"cluster": "one author"} for example in make_examples(*[0, 1] * 10)]
    with pytest.raises(SeedbedError, match="clusters are drawn together or not at all"):
        draw(examples, 4)
