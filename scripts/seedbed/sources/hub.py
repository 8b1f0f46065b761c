"""Fetch a commit of a repository on the Hugging Face hub, file by file.

huggingface_hub resolves a revision and lists its files (HF_ENDPOINT and HF_TOKEN are honoured).
`seedbed.sources.http` downloads them, since huggingface_hub no longer resumes another process's download.
"""

import contextlib
import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from seedbed.core.errors import SeedbedError
from seedbed.core.files import sha256
from seedbed.core.paths import folded, inside, outside
from seedbed.sources import http
from seedbed.sources.retries import PATIENCE, Patience, TryAgain, is_temporary, repeat
from seedbed.sources.space import check_space

SCHEME = "hf://"
BLOCK = 2**20
A_FILE = "a file of the repository"
COMMIT = re.compile(r"[0-9a-f]{40}")  # also the form of git's hash of a file
SHA256 = re.compile(r"[0-9a-f]{64}")
# errors of the hub's client for a malformed answer
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
MOST_LISTED = 64 * 2**20  # bytes of the hub's answer, enough for more than 200,000 files
DISTRUST = "make sure that you trust the hub at HF_ENDPOINT, or give a folder with the files as mirror"


@dataclass(frozen=True)
class Repository:
    """A repository: kind "model" or "dataset", id "OWNER/NAME", and the revision in its URL, if any."""

    kind: str
    id: str
    revision: str | None


def parse(location: str) -> Repository:
    """Parse hf://OWNER/NAME or hf://datasets/OWNER/NAME, with or without @REVISION.

    Raises:
        SeedbedError: the location has another form.
    """
    split = urlsplit(location)
    path, _, revision = unquote(split.netloc + split.path).partition("@")
    parts = [part for part in path.split("/") if part]
    kind = "dataset" if parts[:1] == ["datasets"] else "model"
    parts = parts[1:] if kind == "dataset" else parts
    if len(parts) not in (1, 2) or not location.startswith(SCHEME):
        raise SeedbedError("invalid location of a repository; it is given as hf://OWNER/NAME", found=location)
    return Repository(kind, "/".join(parts), revision.strip("/") or None)


def fetch(
    location: str,
    folder: str | Path,
    *,
    revision: str | None = None,
    include: Sequence[str] | None = None,
    patience: Patience = PATIENCE,
) -> tuple[str, dict[str, Path]]:
    """Download the files of a revision below `folder`; return (commit, {path in the repository: file}).

    Each file is checked against the hub's hash. Files of the same commit from an earlier process are reused.

    Args:
        location: hf://OWNER/NAME; a revision in it overrides `revision`.
        folder: the folder for downloads, with a subfolder for each commit.
        revision: a commit, tag or branch; None: main.
        include: patterns (fnmatch) of the wanted files; None: all.
        patience: attempts and time limits.

    Raises:
        DiskFull: there is not enough room for all files.
        SeedbedError: the repository, revision or a file does not exist or needs a token; the hub does not
            answer, answers with another commit, or lists invalid files.
    """
    repository = parse(location)
    asked = repository.revision or revision or "main"
    info = _ask(repository, asked, patience)
    commit = _commit(info, asked)
    listed = info.siblings or []
    wanted = included([str(sibling.rfilename) for sibling in listed], include)
    files = [sibling for sibling in listed if str(sibling.rfilename) in wanted]
    _check_files(files)
    target = Path(folder) / f"{repository.id.replace('/', '--')}-{commit}"
    paths = {sibling.rfilename: inside(target, sibling.rfilename, A_FILE) for sibling in files}
    target.mkdir(parents=True, exist_ok=True)
    there = sum(path.stat().st_size for path in paths.values() if path.exists())
    check_space(target, sum(sibling.size or 0 for sibling in files) - there)
    for sibling in files:
        http.download(
            _url(repository, sibling.rfilename, commit),
            paths[sibling.rfilename],
            size=sibling.size,
            verify=lambda path, sibling=sibling: _check(path, sibling),
            headers=_authorization(),
            patience=patience,
        )
    return commit, paths


def included(paths: Sequence[str], include: Sequence[str] | None) -> set[str]:
    """The paths that match one of the patterns; without patterns, all.

    Raises:
        SeedbedError: a pattern matches no path.
    """
    if include is None:
        return set(paths)
    matches = {pattern: fnmatch.filter(paths, pattern) for pattern in include}
    empty = [pattern for pattern, found in matches.items() if not found]
    if empty:
        some = sorted(paths)[:10]
        raise SeedbedError(
            f"no file matches {', '.join(empty)}",
            found=f"{len(paths)} files: {', '.join(some)}{', ...' if len(paths) > len(some) else ''}",
            hint="correct `include` of the source",
        )
    return {path for found in matches.values() for path in found}


def _ask(repository: Repository, revision: str, patience: Patience) -> Any:
    """A revision's commit, and the names, sizes and hashes of its files."""
    import httpx2  # huggingface_hub's HTTP library, whose errors it does not catch
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    api = HfApi(endpoint=_endpoint())

    def attempt() -> Any:
        try:
            with _online(), _bounded():
                return api.repo_info(
                    repository.id,
                    repo_type=repository.kind,
                    revision=revision,
                    files_metadata=True,
                    timeout=patience.read,
                )
        except HFValidationError as error:
            raise SeedbedError(f"invalid name of a repository: {error}") from error
        except (httpx2.InvalidURL, *MALFORMED) as error:
            raise SeedbedError(
                "the hub's answer or its address is invalid",
                found=f"{type(error).__name__}: {error}"[:300],
                hint=DISTRUST,
            ) from error
        except (HfHubHTTPError, httpx2.HTTPError) as error:
            response = getattr(error, "response", None)
            reason = " ".join(str(error).split())
            if response is None or is_temporary(response.status_code):
                raise TryAgain(
                    f"the hub does not answer: {type(error).__name__}: {reason}",
                    None if response is None else response.headers.get("Retry-After"),
                ) from error
            raise SeedbedError(
                f"the hub refuses revision {revision!r} of {repository.id!r}",
                found=reason,
                hint="check the name; a repository that requires a log-in needs HF_TOKEN",
            ) from error

    return repeat(attempt, f"{SCHEME}{repository.id}", patience)


@contextlib.contextmanager
def _online() -> Iterator[None]:
    """Let huggingface_hub use the network although HF_HUB_OFFLINE is set.

    The variable forbids libraries to load files on their own, but users name sources in the config.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = False
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Stop reading an answer of the hub that is too long for a list of files."""
    from huggingface_hub.utils import get_session

    def read(response: Any) -> None:
        content = bytearray()
        for block in response.iter_bytes():
            content += block
            if len(content) > MOST_LISTED:
                raise SeedbedError(
                    "the hub's answer is too long for a list of files",
                    found=f"more than {MOST_LISTED:,} bytes",
                    hint=DISTRUST,
                )
        response._content = bytes(content)  # as its own read() does

    hooks = get_session().event_hooks["response"]
    hooks.append(read)
    try:
        yield
    finally:
        hooks.remove(read)


def _endpoint() -> str:
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def _url(repository: Repository, path: str, commit: str) -> str:
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repository.id, path, repo_type=repository.kind, revision=commit, endpoint=_endpoint())


def _authorization() -> dict[str, str]:
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _check(path: Path, sibling: Any) -> None:
    """Compare a file with the hub's hash: SHA-256 for large files, git's own for the others."""
    if sibling.lfs is not None:
        kind, found, expected = "SHA-256", sha256(path), sibling.lfs.sha256
    else:
        kind, found, expected = "git hash", _git_hash(path), sibling.blob_id
    if found != expected:
        raise SeedbedError(f"the {kind} of {sibling.rfilename} is {found}, the hub states {expected}")


def _git_hash(path: Path) -> str:
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _commit(info: Any, asked: str) -> str:
    """The commit in the hub's answer; if `asked` is a commit, both must be the same."""
    found = info.sha
    if not isinstance(found, str) or not COMMIT.fullmatch(found):
        raise SeedbedError("the hub answers with an invalid commit", found=f"{found!r:.100}", hint=DISTRUST)
    if COMMIT.fullmatch(asked.lower()) and found != asked.lower():
        raise SeedbedError(
            f"the hub answers with another commit than the requested {asked}",
            found=found,
            hint=DISTRUST,
        )
    return found


def _check_files(files: Sequence[Any]) -> None:
    """Refuse files with an invalid name, size or hash."""
    seen: dict[str, str] = {}
    for sibling in files:
        name = sibling.rfilename
        inside("files", name, A_FILE)
        key = folded(outside(name))
        sizes = [sibling.size, sibling.lfs.size if sibling.lfs else None]
        digest = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
        if key in seen:
            wrong = f"it is the same file as {seen[key]}"
        elif http.is_note(Path(name)):
            wrong = "this name is reserved for the note on a download"
        elif not all(size is None or _is_size(size) for size in sizes):
            wrong = f"its sizes are {sizes!r:.100}"
        elif not isinstance(digest, str) or not (SHA256 if sibling.lfs else COMMIT).fullmatch(digest):
            wrong = f"its hash is {digest!r:.100}"
        else:
            seen[key] = name
            continue
        raise SeedbedError("the hub lists an invalid file", where=name, found=wrong, hint=DISTRUST)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
