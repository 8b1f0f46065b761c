"""Paths and locations that no file can have."""

import pytest
from builders_config import demo_config, refused

from seedbed.config.plan import Plan


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_a_tilde_is_the_user_s_own_folder(raw, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = Plan(raw | {"results": "~/mine"})
    assert plan.experiment_folder == f"{tmp_path}/mine/demo"
    assert "does not match" in refused(raw | {"results": "a{b}"})
    for key in ("results", "lock", "mirror"):
        told = refused(raw | {key: "~nosuchuser/x"})
        assert "unknown user in a path" in told
        assert f"config, {key}" in told


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://[foo/x.zip", "invalid location: Invalid IPv6 URL"),
        ("file://[x/x.zip", "invalid location: Invalid IPv6 URL"),
        ("~nosuchuser/x.zip", "unknown user in a path"),
        ("data/d{x}.zip", "a brace, which Snakemake reads as a wildcard"),
        ("", "'' should be non-empty"),
    ],
)
def test_a_location_that_is_none(raw, location, told):
    raw["sources"] = {"mine": {"locations": [location]}}
    raw["datasets"]["reviews_fr"]["source"] = "mine"
    message = refused(raw)
    assert told in message
    assert "config, sources.mine.locations" in message
    assert "hint:" in message


@pytest.mark.parametrize("key", ["results", "lock", "mirror"])
@pytest.mark.parametrize(
    "path", ["r\n", "r\x1b[31m", "r\u2028", "r\u00a0", " r", "a/" + "x" * 256, "é" * 128]
)
def test_paths_that_no_file_system_has_or_that_a_slip_made(raw, key, path):
    message = refused(raw | {key: path})
    assert f"config, {key}" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("location", ["data\n.zip", "http://h/\x1b[2J", "file:///a\u2028b", "hf://a/b\r"])
def test_locations_hold_no_control_characters(raw, location):
    raw["sources"] = {"s": {"locations": [location]}}
    raw["datasets"]["reviews_fr"]["source"] = "s"
    message = refused(raw)
    assert "config, sources.s.locations" in message
    assert location not in message
