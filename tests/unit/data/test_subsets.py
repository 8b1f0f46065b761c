"""Orders of training texts: nested subsets with the strata in proportion."""

import collections

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_csv
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES
from seedbed.data import subsets
from seedbed.models.limits import check_sizes

LABELS = [0] * 60 + [1] * 30 + [2] * 10
IDS = [f"train-{index}" for index in range(100)]


def test_each_beginning_has_the_classes_in_proportion():
    label = dict(zip(IDS, LABELS, strict=True))
    ordered = subsets.order(IDS, LABELS, seed=0)
    assert sorted(ordered) == sorted(IDS)
    for size in range(1, 101):
        counts = collections.Counter(label[name] for name in ordered[:size])
        for stratum, share in ((0, 0.6), (1, 0.3), (2, 0.1)):
            assert abs(counts[stratum] - share * size) <= 1


def test_the_seed_alone_determines_the_order():
    first = subsets.order(IDS, LABELS, seed=0)
    backwards = subsets.order(IDS[::-1], LABELS[::-1], seed=0)
    assert first == backwards
    other = subsets.order(IDS, LABELS, seed=1)
    assert first != other
    assert len({*first[:10]} & {*other[:10]}) < 5


@pytest.mark.parametrize(
    ("outputs", "labels"),
    [
        (CLASSES, [index % 2 for index in range(20)]),
        (LABEL_SETS, [[index % 2, 1] for index in range(20)]),
        (VALUES, [float(index) for index in range(20)]),
        (ANSWERS, [None] * 20),
    ],
)
def test_the_order_of_each_task_is_written_with_its_ranks(tmp_path, outputs, labels):
    examples = [{"id": f"train-{index}", "label": label} for index, label in enumerate(labels)]
    subsets.write_order(tmp_path / "seed0.csv", examples, outputs, seed=0)
    header, rows = read_csv(tmp_path / "seed0.csv")
    assert header == ["rank", "example"]
    assert [int(rank) for rank, _ in rows] == list(range(1, 21))
    if outputs == VALUES:  # one of each tenth of the numbers
        firsts = sorted(int(name.removeprefix("train-")) // 2 for _, name in rows[:10])
        assert firsts == list(range(10))


def test_a_size_of_all_texts_or_more_is_refused(tmp_path):
    path = tmp_path / "reviews" / "subsets" / "seed0" / "order.csv"
    path.parent.mkdir(parents=True)
    examples = [{"id": f"train-{index}", "label": index % 2} for index in range(20)]
    subsets.write_order(path, examples, CLASSES, seed=0)
    check_sizes([19], [path])
    with pytest.raises(SeedbedError, match="not below the number of training texts") as refused:
        check_sizes([5, 20], [path])
    assert "'reviews' has 20" in str(refused.value)
