"""Drawing a validation split: stratified, seeded, by text, and refused where it would be too small."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.core.errors import SeedbedError
from seedbed.data.splitting import class_sizes, connected, draw_groups, draw_split, sample
from seedbed.data.texts import normalise

LABELS = ("neg", "pos")


def make_examples(*classes):
    return [
        {"id": f"train-{index}", "text": f"texte {index}", "label": label}
        for index, label in enumerate(classes)
    ]


def draw(examples, size, seed=0, **more):
    return draw_split("d", "validation", examples, LABELS, {"size": size, "seed": seed}, **more)


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
    rare = [min(2, [label for _, label in rows].count(each) // 3) for each in (0, 1)]
    assert all(map(int.__le__, counts(validation), map(max, wanted, rare)))
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
    told = "d, validation: drew neg: 6, pos: 6 instead of the requested neg: 8, pos: 8, since identical texts"
    assert told in caplog.text


@pytest.mark.parametrize(
    ("rare", "drawn", "told"),
    [
        (9, [9, 2], ""),
        (6, [9, 2], ""),
        (5, [9, 1], "pos (1 of 5)"),
        (3, [10, 1], "pos (1 of 3)"),
        (2, [10, 0], "pos (0 of 2)"),
    ],
)
def test_a_rare_class_is_placed_where_it_can_be_with_a_warning(rare, drawn, told, caplog):
    examples = make_examples(*[0] * 94, *[1] * rare, *[2] * 30)
    train, validation = draw_split(
        "d", "validation", examples, (*LABELS, "other"), {"size": 13, "seed": 0}, threshold=0.8
    )
    assert counts(validation) == drawn
    assert counts(train) == [94 - drawn[0], rare - drawn[1]]
    assert ("classes too rare for this split" in caplog.text) == bool(told)
    assert told in caplog.text


@pytest.mark.parametrize(
    ("classes", "size", "told"),
    [
        ([0, 1] * 10, 0.01, "0.01 of 20 examples"),
        ([0] * 20, 10, "the draw gives neg: 10, pos: 0"),
        ([0] * 20 + [1], 10, "the draw gives neg: 10, pos: 0"),
    ],
)
def test_a_split_of_no_use_is_refused(classes, size, told):
    with pytest.raises(SeedbedError, match="no validation split of use can be drawn") as caught:
        draw(make_examples(*classes), size)
    assert told in str(caught.value)
    assert "config, datasets.d.validation_split.size" in str(caught.value)


@pytest.mark.parametrize("size", [20, 21, 4.5])
def test_sizes_that_cannot_be_drawn(size):
    with pytest.raises(SeedbedError, match=f"cannot be drawn(.|\n)*found: {size:g}, of 20 examples"):
        draw(make_examples(*[0, 1] * 10), size)


def test_a_share_is_one_of_the_training_file():
    assert len(draw(make_examples(*[0, 1] * 40), 0.1, total=100)[1]) == 10


# --- near-duplicates ---


def similar(group, member):
    """Members of a group share all but one word of 60; texts of different groups share none."""
    words = [f"mot{group}x{index}" for index in range(60)]
    words[10 + 20 * member] = f"autre{member}"
    return " ".join(words)


@pytest.mark.parametrize("order", [1, -1])
def test_near_duplicates_are_drawn_together_on_request(order):
    examples = make_examples(*[0] * 30, *[1] * 30)
    for number, example in enumerate(examples):
        example["text"] = similar(number // 3, number % 3)
    asked = {"size": 12, "seed": 0}
    divided = []
    for together in ({}, {"together": "near"}):
        train, validation = draw_split(
            "d", "test", examples[::order], LABELS, asked | together, threshold=0.7
        )
        groups = [{int(example["id"][6:]) // 3 for example in part} for part in (train, validation)]
        divided.append(groups[0] & groups[1])
        assert counts(validation) == [6, 6]
    assert divided[0]
    assert not divided[1]
    known = ids(draw_split("d", "test", examples, LABELS, asked | {"together": "near"}, threshold=0.7)[1])
    assert sorted(ids(validation)) == sorted(known)


# --- samples ---


@given(st.lists(st.integers(0, 2), min_size=5, max_size=60), st.integers(3, 60), st.integers(0, 9))
def test_a_sample_keeps_proportions_and_is_part_of_a_larger_one(classes, size, seed):
    examples = make_examples(*classes)
    kept = sample(examples, size, seed)
    assert len(kept) == min(size, len(examples))
    assert [example for example in examples if example in kept] == kept
    assert {example["label"] for example in kept} == set(classes)
    for label in set(classes):
        share = size * classes.count(label) / len(classes)
        assert sum(example["label"] == label for example in kept) <= max(1, share + 1)
    larger = ids(sample(examples, size + 7, seed))
    assert set(ids(kept)) <= set(larger)
    assert set(ids(sample(examples[::-1], size, seed))) == set(ids(kept))


def test_a_share_of_a_split_is_sampled_and_each_seed_draws_another():
    examples = make_examples(*[0, 1] * 50)
    assert counts(sample(examples, 0.2, 0)) == [10, 10]
    assert ids(sample(examples, 20, 0)) != ids(sample(examples, 20, 1))


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
