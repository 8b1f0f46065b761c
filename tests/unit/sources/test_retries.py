"""Repeated requests: how many, after which pauses, and when the count starts anew."""

import logging
import time

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.sources.retries import Patience, TryAgain, is_temporary, repeat


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that are slept through, without sleeping."""
    found = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def failing(**keys):
    def attempt():
        raise TryAgain("busy", **keys)

    return attempt


def test_pauses_double_up_to_the_longest_and_differ_between_jobs(pauses):
    patience = Patience(attempts=5, backoff=1.0, longest_pause=5.0)
    for _ in range(20):
        with pytest.raises(SeedbedError, match=r"^busy \(5 attempts in a row\)$"):
            repeat(failing(), "x", patience)
    rounds = [pauses[start : start + 4] for start in range(0, 80, 4)]
    for first, second, third, fourth in rounds:
        assert 1 <= first <= 2 <= second <= 3
        assert 4 <= third <= 5 == fourth
    assert len({first for first, *_ in rounds}) == 20


def test_one_attempt_is_one(pauses):
    with pytest.raises(SeedbedError, match="1 attempts in a row"):
        repeat(failing(), "x", Patience(attempts=1))
    assert pauses == []


def test_new_bytes_start_the_count_anew(pauses):
    sizes = [5, 5, 9, 9, 9]  # bytes that are there after each attempt; the last two bring none
    here = []

    def attempt():
        here.append(sizes[len(here)])
        raise TryAgain("cut off")

    with pytest.raises(SeedbedError, match="3 attempts in a row"):
        repeat(attempt, "x", Patience(attempts=3), lambda: here[-1])
    assert here == sizes


def test_a_result_after_failures_is_returned_and_each_failure_logged(pauses, caplog):
    answers = iter([TryAgain("HTTP status 503"), TryAgain("cut off", at_once=True), "text"])

    def attempt():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    caplog.set_level(logging.WARNING)
    assert repeat(attempt, "books.zip") == "text"
    assert [record.getMessage().split("; ")[0] for record in caplog.records] == [
        "books.zip: HTTP status 503",
        "books.zip: cut off",
    ]
    assert pauses[1] == 0.0


@pytest.mark.parametrize("header", ["", "soon", "-5", "7.5", "9" * 5000, "Mon, 99 Foo 99999 99:99:99 GMT"])
def test_a_pause_that_cannot_be_read_is_none(pauses, header):
    with pytest.raises(SeedbedError):
        repeat(failing(retry_after=header), "x", Patience(attempts=2, backoff=1.0))
    assert 1 <= pauses[0] <= 2


def test_a_pause_that_the_server_asks_for_has_a_limit(pauses):
    with pytest.raises(SeedbedError, match="busy; the server asks to come back in 301 s"):
        repeat(failing(retry_after=" 301 "), "x", Patience(attempts=2))
    with pytest.raises(SeedbedError, match="2 attempts"):
        repeat(failing(retry_after="300"), "x", Patience(attempts=2))
    assert pauses == [300]


def test_statuses_that_may_pass():
    assert [code for code in (400, 401, 404, 408, 410, 425, 429, 500, 503, 599) if is_temporary(code)] == [
        *(408, 425, 429, 500, 503, 599)
    ]
