"""A process for untrusted files, without a network and without secrets of the environment.

If the system allows it, the process does not see other processes either. It can access the file system.
`run` starts a module of the library in such a process and sends it a request; `answer` is the other end.
"""

import errno
import functools
import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError, from_system
from seedbed.core.files import parse_json, read_json
from seedbed.core.printable import Formatter

log = logging.getLogger(__name__)

# options of `unshare` for an ordinary user, strictest first; a container may allow only the last
NAMESPACES = (
    ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("--user", "--map-root-user", "--net"),
)
# the only variables that the process gets, so no tokens and passwords
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "LANG", "LC_ALL", "OMP_NUM_THREADS")
LIBRARY = Path(__file__).parents[2]
GIB = 2**30
SHARED = 20  # wall time allowed, as a multiple of the CPU time, since the cores may be shared
MOST_LINES = 400  # of the process's output in the log


@functools.cache
def find_unshare() -> tuple[tuple[str, ...], str]:
    """The command that runs a process without a network; if there is none, () and the reason."""
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
    """Run `python -m module` in a separate process and return its answer to `request`.

    The process has no network, unless the system forbids this to ordinary users, which gives a warning. Its
    log is added to the log of this process.

    Args:
        module: a module whose main calls `answer`.
        request: plain data.

    Raises:
        SeedbedError: the process raised it, or died.
    """
    prefix, reason = find_unshare()
    if prefix:
        log.info("files from outside are read in a process without a network (%s)", " ".join(prefix))
    else:
        log.warning(
            "files from outside are read in a process with a network, since this system does not let an "
            "ordinary user start one without (%s); the list of allowed names still applies",
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


def _relay(text: str) -> None:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        left_out = f"... {len(lines) - MOST_LINES:,} lines left out ..."
        lines = [*lines[: MOST_LINES // 2], left_out, *lines[-MOST_LINES // 2 :]]
    for line in filter(None, lines):
        level, _, message = line.partition(" ")
        if level in ("INFO", "WARNING", "ERROR"):
            log.log(getattr(logging, level), "%s", message)
        else:
            log.info("%s", line)


def _read_answer(done: subprocess.CompletedProcess[str]) -> Any:
    try:
        found = parse_json(done.stdout)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not {"answer", "error"} & found.keys():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SeedbedError(
            "the process that reads files from outside died",
            where=" ".join(done.args[-2:]),
            found=f"exit code {done.returncode}; {last[-300:]}",
            hint="if it was killed, the model may need more memory; else a file may be damaged",
        )
    if "error" in found:
        raise SeedbedError(**found["error"])
    return found["answer"]


def answer(work: Callable[[Any], Any]) -> None:
    """Read the request from standard input, and write the result of `work`, or its error, as JSON."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keep the output of libraries out of the answer
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter("%(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    request = json.load(sys.stdin)
    try:
        found = json.dumps({"answer": work(request)})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is not an Exception
        files = ", ".join(map(str, request.get("files", {}).values()))
        found = json.dumps({"error": as_dict(damage(error, files))})
    with channel:
        channel.write(found)


def damage(error: BaseException, where: str = "") -> SeedbedError:
    """A SeedbedError for any error of a process that reads the untrusted files `where`."""
    if isinstance(error, SeedbedError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(LIBRARY / "seedbed")]
    at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    first = (str(error).splitlines() or [""])[0]
    refused = from_system(error)
    if refused is not None:
        return SeedbedError(
            refused.what, where=refused.where or where, found=refused.found, hint=refused.hint
        )
    return SeedbedError(
        "a file from outside is damaged, or made to break its reader",
        where=where,
        found=f"{type(error).__name__}: {first[:300]}{at}",
        hint="download the files from their authors again; if they are complete, report this line as a bug",
    )


def as_dict(error: SeedbedError) -> dict[str, Any]:
    """The parts of an error as plain data."""
    found = error.found
    if found is not None and not isinstance(found, (bool, int, float)):
        found = str(found)
    return {"what": error.what, "where": error.where, "found": found, "hint": error.hint}


def run_forked(
    work: Callable[[], None],
    report: str | Path,
    size: int,
    what: str = "a pickle",
    where: str = "",
    seconds: int = 120,
    memory: int = 2 * GIB,
) -> None:
    """Run `work` in a fork of this process, with limits of memory, time and files according to `size`.

    A fork does not load modules again. Of its effects, only written files remain.

    Args:
        work: the function to run.
        report: path for the fork's error.
        size: bytes of the untrusted file.
        what: the kind of file, for messages.
        where: the file's path, for messages.
        seconds: limit of CPU time, plus one second for each MiB of the file.
        memory: limit in bytes, plus eight for each byte of the file.

    Raises:
        SeedbedError: `work` raised an error, or the fork died.
    """
    process = os.fork()
    if process == 0:
        code = 1
        try:
            _limit(size, seconds, memory)
            work()
            code = 0
        except BaseException as error:  # a panic of a library in Rust is not an Exception
            excess = _excess(error)
            raised = _broke_off(what, where, excess) if excess else damage(error, where)
            Path(report).write_text(json.dumps(as_dict(raised)), encoding="utf-8")
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return
    if Path(report).exists():
        raise SeedbedError(**read_json(report))
    late = code in (-signal.SIGXCPU, -signal.SIGALRM)
    raise _broke_off(what, where, "it takes too much time" if late else f"exit code {code}")


def _broke_off(what: str, where: str, found: str) -> SeedbedError:
    return SeedbedError(
        f"the process that reads {what} from outside died",
        where=where,
        found=found,
        hint="the file may be damaged, or made to use up time or memory: download it from its authors again",
    )


def _excess(error: BaseException) -> str:
    """The limit that caused an error; empty if none did."""
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"it writes more than {resource.getrlimit(resource.RLIMIT_FSIZE)[0]:,} bytes into one file"
    return ""


def _limit(size: int, seconds: int, memory: int) -> None:
    # generous for honest files, but stops files that unpack endlessly
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds += size // 2**20
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds, 5)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SHARED * seconds)
    _lower(resource.RLIMIT_FSIZE, 2 * size + GIB // 16)
    _lower(resource.RLIMIT_CORE, 0)
    if Path("/proc/self/statm").exists():
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, mapped + 8 * size + memory)


def _lower(kind: int, value: int, margin: int = 0) -> None:
    """Lower a limit; `margin` is the gap between the soft limit, which sends a signal, and the hard one."""
    _, hard = resource.getrlimit(kind)
    value, most = (
        (each if hard == resource.RLIM_INFINITY else min(each, hard)) for each in (value, value + margin)
    )
    resource.setrlimit(kind, (value, most))
