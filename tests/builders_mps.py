"""A stand-in for nvidia-cuda-mps-control, whose daemon and answers are real processes and a real socket."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from seedbed.running import mps

JOURNAL = "MPS_JOURNAL"  # the variable with the path of the file in which daemons note what happens
# Like NVIDIA's, it does not start where a socket is, forks, and answers at once.
PROGRAM = """
import json, os, socket, sys
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
place = os.path.join(pipe, "control")

def note(event, **more):
    with open(os.environ["MPS_JOURNAL"], "a") as stream:
        stream.write(json.dumps({"event": event, "pid": os.getpid(), **more}) + "\\n")

def serve(server):
    note("start", visible=os.environ.get("CUDA_VISIBLE_DEVICES"), log=os.environ["CUDA_MPS_LOG_DIRECTORY"])
    while True:
        client, _ = server.accept()
        with client:
            command = client.makefile().readline().strip()
            if command == "quit":
                os.unlink(place)
                note("quit")
                return
            client.sendall(b"4711\\n")

if sys.argv[1:] == ["-d"]:
    if os.path.exists(place):
        sys.exit("An instance of this daemon is already running")
    if "MPS_FAILS" in os.environ:
        sys.exit(os.environ["MPS_FAILS"])
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen()
    if os.fork() == 0:
        serve(server)
else:
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(place)
    except OSError:
        sys.exit("Cannot find MPS control daemon process")
    client.sendall(sys.stdin.readline().encode())
    print(client.makefile().read(), end="")
"""


def install(folder: Path) -> dict[str, str]:
    """Write the program into a folder; the variables with which processes find and use it."""
    folder.mkdir()
    path = folder / mps.CONTROL
    path.write_text(f"#!{sys.executable} -SEs\n{PROGRAM}", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", JOURNAL: str(folder / "journal.jsonl")}


@pytest.fixture
def slots_folder():
    """A folder for slots whose path is short enough for a socket in it; pytest's own may not be.

    The process that stops the last daemon may still work in it at its end.
    """
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder
