"""Hubs, and the start of sessions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _events as events
from ._agent_api import Producer
from ._connection import Transport
from ._core import HubCore, SessionCore
from ._events import EventOptions
from ._runtime import run_awaiting, run_blocking
from ._session import AsyncSession, Invitation, Session
from ._text import Text

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SessionBlock:
    """A session that starts when its block is entered: with ``with`` or with ``async with``."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._session: Session | None = None
        self._async_session: AsyncSession | None = None

    def __enter__(self) -> Session:
        self._session = Session(run_blocking(self._start(), "sayso.session"))
        return self._session.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._session is not None
        self._session.__exit__(kind, error, trace)

    async def __aenter__(self) -> AsyncSession:
        self._async_session = AsyncSession(await run_awaiting(self._start()))
        return await self._async_session.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._async_session is not None
        await self._async_session.__aexit__(kind, error, trace)

    def start(self) -> Session:
        """Starts the session without a block. End it with `finish`, `fail` or `cancel`."""
        return Session(run_blocking(self._start(), "start"))

    async def start_async(self) -> AsyncSession:
        """Starts the session without a block. End it with `finish`, `fail` or `cancel`."""
        return AsyncSession(await run_awaiting(self._start()))


class Hub:
    """A connection to a hub. It connects when it is first used."""

    def __init__(self, core: HubCore) -> None:
        self._core = core

    @property
    def address(self) -> str:
        return str(self._core.address)

    @property
    def removed_secrets(self) -> int:
        """How many secrets were removed from what people hear."""
        return self._core.removed_secrets

    def session(
        self,
        request: str,
        *,
        says: Text | None = None,
        publish_request: bool = True,
        person: str | None = None,
        agent: Producer | str | None = None,
        language: str | None = None,
        text_direction: Literal["ltr", "rtl", "auto"] | None = None,
        available_languages: Iterable[str] = (),
        fallback_languages: Iterable[str] = (),
        script: str | None = None,
        calendar: str | None = None,
        expected_duration: float | None = None,
        tools: Iterable[str] = (),
        states: Mapping[str, Text] | None = None,
        producers: Iterable[Producer] = (),
        parent: str | Session | AsyncSession | None = None,
        **options: Unpack[EventOptions],
    ) -> SessionBlock:
        """Returns a session: one task that a person requested, from its start to exactly one end.

        If the block ends normally, the task is done. If it ends with an exception, the session fails or is cancelled, and open
        questions are withdrawn.
        """
        core = self._core

        async def start() -> SessionCore:
            body = events.session_body(
                core,
                request,
                says=says,
                publish_request=publish_request,
                person=person,
                agent=agent,
                language=language,
                text_direction=text_direction,
                available_languages=available_languages,
                fallback_languages=fallback_languages,
                script=script,
                calendar=calendar,
                expected_duration=expected_duration,
                tools=tools,
                states=states,
                producers=producers,
                parent=parent if parent is None or isinstance(parent, str) else parent.id,
                options=options,
            )
            is_english = (language or core.language).lower().split("-")[0] == "en"
            return await core.start(body, is_english)

        return SessionBlock(start)

    def join(self, invitation: Invitation, *, producer: Producer | None = None) -> SessionBlock:
        """Joins a session as the invited producer."""
        core = self._core
        return SessionBlock(lambda: core.join(invitation.session_id, invitation.invitation, producer))

    def close(self) -> None:
        """Ends what is open and closes the connection."""
        run_blocking(self._core.abandon_sessions())

    async def aclose(self) -> None:
        """Ends what is open and closes the connection."""
        await run_awaiting(self._core.abandon_sessions())

    def __repr__(self) -> str:
        return f"<Hub {self.address}>"


def hub(
    url: str | None = None,
    token: str | None = None,
    *,
    agent: str | Producer | None = None,
    language: str | None = None,
    ca_file: str | None = None,
    connect_timeout: float = 30.0,
    transport: Transport = "auto",
    redactor: Callable[[str], str] | None = None,
    manifest: Mapping[str, Any] | str | None = None,
    states: Mapping[str, Text] | None = None,
) -> Hub:
    """Returns a hub: at `url`, else in ``SAYSO_URL``, else the personal hub of this user.

    The token is `token`, else ``SAYSO_TOKEN``. `connect_timeout` is how long calls wait for a hub that does not answer.
    """
    producer: Producer | None = {"agent_id": agent} if isinstance(agent, str) else agent
    core = HubCore(
        url,
        token or os.environ.get("SAYSO_TOKEN") or None,
        agent=producer,
        language=language,
        ca_file=ca_file,
        connect_timeout=connect_timeout,
        transport=transport,
        redactor=redactor,
        manifest=manifest,
        states=states,
    )
    return Hub(core)


_default_lock = threading.Lock()
_default: dict[tuple[int, str | None, str | None], Hub] = {}


def default_hub() -> Hub:
    """Returns the hub that the environment names, or the personal hub. Connections are shared."""
    key = (os.getpid(), os.environ.get("SAYSO_URL"), os.environ.get("SAYSO_TOKEN"))
    with _default_lock:
        if key not in _default:
            _default[key] = hub()
        return _default[key]


def session(request: str, *, hub: Hub | None = None, **settings: Any) -> SessionBlock:
    """Returns a session at the default hub, or at `hub`. The settings are those of :meth:`Hub.session`."""
    return (hub or default_hub()).session(request, **settings)


__all__ = ["Hub", "SessionBlock", "default_hub", "hub", "session"]
