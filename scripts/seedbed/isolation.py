"""A process for what comes from outside: without a network and without the environment's secrets.

Where the system allows it, it does not see other processes either. The file system is not taken from it.
`run` starts a module of the library in such a process and hands it a request; `answer` is its other end.
"""

import functools
import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seedbed.errors import SeedbedError

log = logging.getLogger(__name__)

# what an ordinary user may have of `unshare`, the best first; a container may allow the last one only
NAMESPACES = (
    ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("--user", "--map-root-user", "--net"),
)
# all that the process sees of the environment: tokens and passwords stay out
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "LANG", "LC_ALL", "OMP_NUM_THREADS")
LIBRARY = Path(__file__).parents[1]
GIB = 2**30


@functools.cache
def find_unshare() -> tuple[tuple[str, ...], str]:
    """The command that takes the network from a process, and why there is none where it is empty."""
    program = shutil.which("unshare")
    if program is None:
        return (), "there is no program unshare"
    reason = ""
    for options in NAMESPACES:
        tried = subprocess.run([program, *options, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return (program, *options), ""
        reason = tried.stderr.strip() or f"unshare ended with {tried.returncode}"
    return (), reason


def run(module: str, request: Mapping[str, Any]) -> Any:
    """Run `python -m module` in a process of its own and return what it answers to `request`.

    It has no network where the system lets an ordinary user take it from a process; the log says whether.
    Its log goes to the log of this process.

    Args:
        module: its main calls `answer`.
        request: plain data.

    Raises:
        SeedbedError: raised there, or the process broke off.
    """
    prefix, reason = find_unshare()
    if prefix:
        log.info("files from outside are read in a process without a network (%s)", " ".join(prefix))
    else:
        log.warning(
            "files from outside are read in a process that still has the network, since this system does not "
            "let an ordinary user take it away (%s); the list of allowed names stands",
            reason,
        )
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment["PYTHONPATH"] = str(LIBRARY)
    done = subprocess.run(
        [*prefix, sys.executable, "-P", "-m", module],
        input=json.dumps(request),
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        env=environment,
        check=False,
    )
    _relay(done.stderr)
    return _read_answer(done)


def _relay(lines: str) -> None:
    for line in lines.splitlines():
        level, _, message = line.partition(" ")
        if level in ("INFO", "WARNING", "ERROR"):
            log.log(getattr(logging, level), "%s", message)
        else:
            log.info("%s", line)


def _read_answer(done: subprocess.CompletedProcess[str]) -> Any:
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SeedbedError(
            "the process that reads files from outside broke off",
            where=" ".join(done.args[-2:]),
            found=f"exit code {done.returncode}; {done.stderr.strip()[-2000:] or 'no message'}",
            hint="if it was killed, there may be too little memory for the model",
        ) from None
    if "error" in found:
        raise SeedbedError(found["error"].pop("what"), **found["error"])
    return found["answer"]


def answer(work: Callable[[Any], Any]) -> None:
    """Read the request on standard input, and write what `work` makes of it, or its error, as JSON."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        found = {"answer": work(json.load(sys.stdin))}
    except SeedbedError as error:
        found = {"error": as_dict(error)}
    with channel:
        json.dump(found, channel)


def as_dict(error: SeedbedError) -> dict[str, Any]:
    """The parts of an error as plain data."""
    found = error.found
    if found is not None and not isinstance(found, (bool, int, float)):
        found = str(found)
    return {"what": error.what, "where": error.where, "found": found, "hint": error.hint}


def run_forked(work: Callable[[], None], report: str | Path, size: int) -> None:
    """Run `work` in a fork of this process, whose memory, time and files are limited by `size`.

    Modules that are loaded need not be loaded again. Nothing that `work` makes is seen here, but the files
    that it writes.

    Args:
        work: what to run.
        report: path at which the fork leaves its error.
        size: bytes of the file that it reads.

    Raises:
        SeedbedError: raised by `work`, or the fork broke off.
    """
    process = os.fork()
    if process == 0:
        code = 1
        try:
            _limit(size)
            work()
            code = 0
        except SeedbedError as error:
            Path(report).write_text(json.dumps(as_dict(error)), encoding="utf-8")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return
    if Path(report).exists():
        told = json.loads(Path(report).read_text(encoding="utf-8"))
        raise SeedbedError(told.pop("what"), **told)
    raise SeedbedError(
        "the process that reads a pickle from outside broke off",
        found=f"exit code {code}",
        hint="the file may be damaged, or made to use up time or memory: take it from its authors again",
    )


def _limit(size: int) -> None:
    # generous for any honest file, and an end for one that unpacks without end
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 120 + size // 2**20
    _lower(resource.RLIMIT_CPU, seconds)
    _lower(resource.RLIMIT_FSIZE, 2 * size + GIB // 16)
    _lower(resource.RLIMIT_CORE, 0)
    if Path("/proc/self/statm").exists():
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, mapped + 8 * size + 2 * GIB)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
