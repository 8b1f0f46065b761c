"""Names of files from outside: whatever they are, the path stays inside its folder, on every system."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seedbed.core import paths
from seedbed.core.errors import SeedbedError

FOLDER = Path("/folder/of/files")
HARMLESS = st.from_regex(r"[a-zA-Zé0-9_-][a-zA-Zé0-9 ._-]{0,20}[a-zA-Zé0-9_-]", fullmatch=True)
HARMFUL = st.sampled_from(
    [
        *("..", ".", "", "C:", "c:x", "nul", "COM1.txt", "aux ", "conin$", "lpt¹.csv", "nul:x", " "),
        *("\n", "\x00", "\x1b[31m", "\u2028", "\ud800", "x" * 256, "é" * 128),
    ]
)
NAMES = st.text() | st.builds(
    lambda parts, separator: separator.join(parts),
    st.lists(HARMLESS | HARMFUL, min_size=1, max_size=4),
    st.sampled_from("/\\"),
)


@given(NAMES)
@example("../evil")
@example("a\\..\\..\\evil")
@example("/tmp/evil")
@example("//evil")
@example("a/" * 1100 + "b")
def test_a_path_that_is_accepted_stays_inside_and_means_the_same_on_windows(name):
    try:
        path = paths.inside(FOLDER, name)
    except SeedbedError:
        return
    relative = path.relative_to(FOLDER)
    assert relative.parts
    assert ".." not in relative.parts
    assert len(str(path).splitlines()) == 1
    assert not any(ord(character) < 32 for character in str(relative))
    assert len(str(relative).encode()) <= paths.PATH_BYTES
    windows = PureWindowsPath(relative)
    assert not windows.drive
    assert not windows.root
    assert not any(PureWindowsPath(part).is_reserved() for part in windows.parts)


@given(st.lists(HARMLESS, min_size=1, max_size=4))
def test_a_harmless_name_is_the_path(parts):
    if not any(PureWindowsPath(part).is_reserved() for part in parts):
        assert paths.inside(FOLDER, "/".join(parts)) == FOLDER.joinpath(*parts)
        assert paths.inside(FOLDER, "\\".join(parts)) == FOLDER.joinpath(*parts)


@pytest.mark.parametrize("name", ["a/nul", "AUX ", "com1 .txt", "CONIN$", "lpt¹.csv", "nul:x", "prn.a.b/c"])
def test_devices_of_windows_are_refused(name):
    with pytest.raises(ValueError, match="is a device on Windows"):
        paths.outside(name)


@pytest.mark.parametrize("name", [5, None, ["a"], {"a": 1}])
def test_what_is_no_text_is_no_name(name):
    with pytest.raises(SeedbedError, match="its name is not a text"):
        paths.inside(FOLDER, name)


@pytest.mark.parametrize(("one", "other"), [("a/B", "A/b"), ("é", "e\u0301"), ("a. ", "a"), ("ß", "SS")])
def test_paths_that_some_file_system_cannot_tell_apart_have_one_folded_form(one, other):
    assert paths.folded(PurePosixPath(one)) == paths.folded(PurePosixPath(other))


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files/link").symlink_to(tmp_path)
    with pytest.raises(SeedbedError, match="would leave its folder by a link"):
        paths.inside(tmp_path / "files", "link/x")
