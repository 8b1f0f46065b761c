"""The glossary explains the terms that a report uses, and no others."""

import re
from pathlib import Path

import pytest

from seedbed.core.tasks import TASKS
from seedbed.report import glossary

APPROVED = Path(__file__).parents[2] / "golden" / "approved" / "documents"
# by which words a text uses a term, where these are not the term itself
WORDS = {
    "untrained model": r"\buntrained\b",
    "unstable": r"\bunstable\b|\binstability\b",
    "paired, unpaired": r"\b(un)?paired\b|\bpairs of (seeds|runs)\b",
    # in small letters the methods of a recipe, which the table of options names in every report
    "LoRA": r"(?-i:LoRA)",
    "QLoRA": r"(?-i:QLoRA)",
    "expected best of n": r"\bexpected best\b",
    "F1": r"\bF1\b",
    "exact permutation test": r"\bpermutation test\b|\bexact p\b",
    "Holm's correction": r"\bHolm\b",
    "Welch's t": r"\bWelch\b",
    "power": r"\bpower of\b",
    "margin": r"\bmargin\b|equivalent within",
    "equivalence test": r"\bone-sided tests\b|\bp, equivalence\b|\bequivalent\b",
    "ASO, ε_min": r"\bASO\b",
    "McNemar's test": r"\bMcNemar\b",
    "variance decomposition": r"\banalysis of variance of test\b",
}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in APPROVED.glob("*/report.txt")))
def test_a_term_of_some_reports_is_explained_where_it_is_used(name):
    report = (APPROVED / name / "report.txt").read_text(encoding="utf-8")
    body, listed = report.rsplit("\nGlossary\n", 1)
    explained = set(listed.split("\n"))
    of_some = [term for term in glossary.terms() if term.used_with]
    assert of_some
    for term in of_some:
        pattern = WORDS.get(term.term, rf"\b{re.escape(term.term)}")
        assert (term.term in explained) == bool(re.search(pattern, body, re.IGNORECASE)), term.term


def test_a_part_that_a_term_is_used_with_is_one_that_is_looked_for():
    named = {part for term in glossary.terms() for part in (*term.used_with, term.outputs) if part}
    asked = set(re.findall(r'"([a-z_]+)": ', Path(glossary.__file__).read_text(encoding="utf-8")))
    assert named <= {*asked, *(task.outputs for task in TASKS.values())}


@pytest.mark.parametrize("led_by", ["accuracy", "led_by_counts"])  # a report is led by one metric
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_glossary_means_each_term_once_in_a_report(task, led_by):
    used = {part for term in glossary.terms() for part in term.used_with}
    used -= {*(other.outputs for other in TASKS.values()), *({"accuracy", "led_by_counts"} - {led_by})}
    terms = [row[0] for row in glossary.table({*used, task.outputs}, task).rows]
    assert len(terms) == len(set(terms)) > 30
