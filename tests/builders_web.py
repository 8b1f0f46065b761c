"""Web servers on loopback that misbehave on demand: for tests of downloads."""

import contextlib
import functools
import hashlib
import http.server
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


class Request(http.server.BaseHTTPRequestHandler):
    """One request; `server.behaviour` answers it, with the help of these methods."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.close_connection = True
        self.server.requests.append((self.path, dict(self.headers)))
        with contextlib.suppress(ConnectionError):
            self.server.behaviour(self)

    def send(self, status: int, body: bytes = b"", **headers: Any) -> None:
        """Answer as a whole; keywords are headers (Retry_After=1); Content-Length unless it is given."""
        self.start(status, **{"Content_Length": len(body)} | headers)
        self.wfile.write(body)

    def start(self, status: int, **headers: Any) -> None:
        """Status and headers; a header that is None is left out."""
        self.send_response(status)
        for key, value in headers.items():
            if value is not None:
                self.send_header(key.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.end_headers()

    def send_file(
        self, body: bytes, etag: str | None = '"1"', stop: int | None = None, pause: float = 0
    ) -> None:
        """Answer as a good server does, with ranges.

        Args:
            stop: cut off before that byte of the file.
            pause: seconds after each block of 64 KiB.
        """
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(span[1]) if span and self.headers.get("If-Range", etag) == etag else 0
        if start and start >= len(body):
            self.send(416, Content_Range=f"bytes */{len(body)}")
            return
        where = f"bytes {start}-{len(body) - 1}/{len(body)}" if start else None
        self.start(206 if start else 200, Content_Length=len(body) - start, ETag=etag, Content_Range=where)
        for begin in range(start, len(body) if stop is None else stop, 2**16):
            self.wfile.write(body[begin : min(begin + 2**16, stop or len(body))])
            self.wfile.flush()
            time.sleep(pause)

    def log_message(self, *arguments: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """`requests`: (path, headers) of each request so far; `url`: where it listens."""

    daemon_threads = True

    def __init__(self, behaviour: Callable[[Request], None]):
        super().__init__(("127.0.0.1", 0), Request)
        self.behaviour, self.requests = behaviour, []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def ranges(self) -> list[str | None]:
        """The Range header of each request."""
        return [headers.get("Range") for _, headers in self.requests]

    def handle_error(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def serving(*behaviours: Callable[[Request], None]) -> Iterator[Server]:
    """A server whose n-th request is answered by the n-th behaviour, later ones by the last."""

    def in_turn(request: Request) -> None:
        behaviours[min(len(request.server.requests), len(behaviours)) - 1](request)

    with Server(in_turn) as server:
        threading.Thread(target=functools.partial(server.serve_forever, 0.01), daemon=True).start()
        yield server
        server.shutdown()


def hub(
    revisions: dict[str, str],
    commits: dict[str, dict[str, bytes]],
    token: str | None = None,
    kind: str = "models",
) -> Callable[[Request], None]:
    """A fake Hugging Face hub of one repository, owner/name.

    Args:
        revisions: branch or tag -> commit.
        commits: commit (40 hexadecimal digits) -> {path: content}; *.safetensors are LFS files.
        token: what clients have to bring.
        kind: models or datasets.
    """
    place = {"models": "", "datasets": "/datasets"}[kind]

    def listing(commit: str) -> bytes:
        siblings = []
        for path, data in commits[commit].items():
            sibling = {"rfilename": path, "size": len(data), "blobId": git_hash(data)}
            if path.endswith(".safetensors"):
                sha256 = hashlib.sha256(data).hexdigest()
                sibling["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 130}
            siblings.append(sibling)
        return json.dumps({"id": "owner/name", "sha": commit, "siblings": siblings}).encode()

    def answer(request: Request) -> None:
        path = request.path.split("?")[0]
        if token and request.headers.get("Authorization") != f"Bearer {token}":
            request.send(401, b"log in", X_Error_Code="GatedRepo")
        elif found := re.fullmatch(rf"/api/{kind}/owner/name/revision/(.+)", path):
            commit = revisions.get(found[1], found[1])
            if commit in commits:
                request.send(200, listing(commit), Content_Type="application/json")
            else:
                request.send(404, b"", X_Error_Code="RevisionNotFound")
        elif found := re.fullmatch(rf"{place}/owner/name/resolve/([0-9a-f]{{40}})/(.+)", path):
            request.send_file(commits[found[1]][found[2]], etag=f'"{found[1]}"')
        else:
            request.send(404, b"", X_Error_Code="RepoNotFound")

    return answer


def git_hash(data: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
