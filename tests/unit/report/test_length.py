"""The report of one dataset is short: what stands open is read in a few minutes."""

import html.parser

import pytest
from builders_report import write_report
from synthetic import learning_rate_levels, make_experiment, make_generation

MOST = 900  # words outside closed details, contents, captions and headings included


class Visible(html.parser.HTMLParser):
    """The words of a page, those of closed details apart; their summaries stand open."""

    UNSEEN = frozenset(["style", "script", "title"])

    def __init__(self) -> None:
        super().__init__()
        self.within: list[str] = []
        self.open, self.folded = 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details":
            self.within.append("opened" if ("open", None) in attrs else "closed")
        elif tag in (*self.UNSEEN, "summary"):
            self.within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in (*self.UNSEEN, "summary", "details"):
            self.within.pop()

    def handle_data(self, data: str) -> None:
        if self.UNSEEN & set(self.within):
            return
        around = self.within[:-2] if self.within[-1:] == ["summary"] else self.within
        if "closed" in around:
            self.folded += len(data.split())
        else:
            self.open += len(data.split())


def counted(page: str) -> Visible:
    found = Visible()
    found.feed(page)
    assert found.within == []
    return found


def test_words_of_closed_details_are_told_apart():
    found = counted("<p>one two</p><details><summary>three</summary>four<details>five</details></details>")
    assert (found.open, found.folded) == (3, 2)


def wrong(folder):
    """A sweep with all that can be warned of: a collapsed run, runs that learned nothing, a leak."""
    return make_experiment(
        folder,
        accuracy=lambda run: learning_rate_levels(run) - 0.2,
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        sizes={"validation": 200, "test": 400},
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=0.0001/seed2"],
        leaked=["test-3"],
    )


@pytest.mark.parametrize("make", [make_experiment, wrong, make_generation])
def test_the_report_of_one_dataset_holds_few_words_unfolded(make, tmp_path):
    found = counted(write_report(make(tmp_path)))
    assert found.open <= MOST
    assert found.folded > found.open
