"""Where the hub is."""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from .errors import HubUnreachable, InvalidRequest, UntrustedHub

_SOCKET_NAME = "sayso-hub.sock"


@dataclass(frozen=True)
class Address:
    """The address of a hub: a host and a port, or the path of a Unix socket."""

    host: str = "localhost"
    port: int = 0
    tls: bool = False
    socket_path: str | None = None

    @property
    def http_host(self) -> str:
        """The value of the header `Host`."""
        if self.socket_path is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def websocket_url(self) -> str:
        return f"{'wss' if self.tls else 'ws'}://{self.http_host}/agent/v1/ws"

    def __str__(self) -> str:
        if self.socket_path is not None:
            return "unix:" + quote(self.socket_path)
        return f"{'https' if self.tls else 'http'}://{self.http_host}"

    def open_unix_socket(self, timeout: float) -> socket.socket:
        """Connects to the Unix socket. Refuses a socket that another user serves."""
        assert self.socket_path is not None
        check_owner(self.socket_path)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(self.socket_path)
            # The owner of the file may have changed since it was checked; the user who serves the socket cannot.
            if peer_user(connection) not in (None, os.getuid()):
                raise UntrustedHub(f"the socket {self.socket_path} is served by another user")
        except BaseException:
            connection.close()
            raise
        return connection


def check_owner(path: str) -> None:
    """Refuses a path that is not a socket, a socket of another user, and a folder in which another user can replace it."""
    try:
        # A link could point to a socket of somebody else.
        status = Path(path).lstat()
        folder = Path(path).parent.stat()
    except OSError as error:
        raise HubUnreachable(f"there is no hub at {path}: {error.strerror}") from error
    if not stat.S_ISSOCK(status.st_mode):
        raise UntrustedHub(f"{path} is not a socket")
    if status.st_uid != os.getuid():
        raise UntrustedHub(f"the socket {path} belongs to another user")
    is_protected = folder.st_mode & 0o022 == 0 or folder.st_mode & stat.S_ISVTX != 0
    if folder.st_uid not in (os.getuid(), 0) or not is_protected:
        raise UntrustedHub(f"other users can replace files in the folder of {path}")


def peer_user(connection: socket.socket) -> int | None:
    """Returns the user who serves a connected Unix socket, or None if the platform does not tell."""
    if sys.platform == "linux":
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return int(user)
    if sys.platform == "darwin":
        # `struct xucred` starts with its version and the user.
        _, user = struct.unpack("II", connection.getsockopt(0, socket.LOCAL_PEERCRED, 76)[:8])
        return int(user)
    return None


def find_address(url: str | None = None) -> Address:
    """Returns the given address, else the one in ``SAYSO_URL``, else the socket of the personal hub. Does not connect."""
    given = url or os.environ.get("SAYSO_URL")
    return parse_address(given) if given else Address(socket_path=str(personal_socket_path()))


def personal_socket_path() -> Path:
    """Returns the path of the personal hub's socket (AAEP §B.4.1)."""
    if sys.platform == "darwin":
        home = os.environ.get("HOME")
        folder = Path(home, "Library/Application Support/AAEP") if home else None
    else:
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        folder = Path(runtime, "aaep") if runtime else None
    if folder is None:
        folder = Path(os.environ.get("TMPDIR") or tempfile.gettempdir(), f"aaep-{os.getuid()}")
    return folder / _SOCKET_NAME


def parse_address(url: str) -> Address:
    """Parses `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`."""
    if url.startswith("unix:"):
        path = unquote(url[len("unix:") :])
        path = path[2:] if path.startswith("///") else path
        if not path.startswith("/"):
            raise InvalidRequest(f"{url!r} is not the address of a hub: the path of the socket must be absolute")
        return Address(socket_path=path)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"{url!r} is not the address of a hub: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{url!r} is not the address of a hub; write http://HOST:PORT, https://HOST:PORT or unix:/PATH")
    if parts.username or parts.password or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise InvalidRequest(f"{url!r} is not the address of a hub: it may contain only a host and a port")
    tls = parts.scheme == "https"
    return Address(host=parts.hostname, port=port or (443 if tls else 80), tls=tls)
