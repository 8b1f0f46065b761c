"""The commit of the workflow's code."""

import subprocess
from pathlib import Path


def git_commit(folder: str | Path) -> str | None:
    """The commit of a checkout, with `-dirty` if files were changed; None outside a git checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
