"""The commit that code was at; without PyTorch, which neither summary nor report needs."""

import subprocess
from pathlib import Path


def git_commit(folder: str | Path) -> str | None:
    """The commit of the workflow, with `-dirty` if it was changed; None outside a git checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
