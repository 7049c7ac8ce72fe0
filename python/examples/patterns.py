"""The five integration patterns of AAEP's guide: `python examples/patterns.py [NAME]`.

middleware, callback, decorator, emitter, loop. Each works with a real hub: the one in SAYSO_URL, or the personal hub.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import sayso


@sayso.tool(irreversible=True, action="Wipe {what}.", consequence="They are gone for ever.")
async def wipe(what: str) -> str:
    print("wiped", what)
    return f"wiped {what}"


async def middleware() -> None:
    """Middleware: one function around every request starts and ends the session."""
    Handler = Callable[[str], Awaitable[str]]

    def with_session(handler: Handler) -> Handler:
        async def handle(request: str) -> str:
            async with sayso.session(request) as s:
                answer = await handler(request)
                await s.say(answer)
                return answer

        return handle

    @with_session
    async def agent(request: str) -> str:
        return await wipe("photos")

    await agent("Tidy up.")


async def callback() -> None:
    """Callback: a framework calls back, and the handler reports."""

    class Handler:
        def __init__(self, session: sayso.AsyncSession) -> None:
            self.session = session

        async def on_start(self, text: str) -> None:
            await self.session.think(text)

        async def on_token(self, token: str) -> None:
            await self.session.write(token)

        async def on_end(self) -> None:
            await self.session.write("", complete=True)

    async with sayso.session("Tidy up.") as s:
        handler = Handler(s)
        await handler.on_start("Looking around.")
        for token in ("The photos ", "are old."):
            await handler.on_token(token)
        await handler.on_end()
        await wipe("photos")


async def decorator() -> None:
    """Decorator: the function itself asks, announces and reports."""
    async with sayso.session("Tidy up."):
        await wipe("photos")


async def emitter() -> None:
    """Event emitter: the framework publishes events, and a bridge translates them."""

    async def framework() -> AsyncIterator[tuple[str, Any]]:
        yield "thinking", "Looking around."
        yield "text", "The photos are old."
        yield "call", ("wipe", {"what": "photos"})
        yield "done", "All is tidy."

    async with sayso.session("Tidy up.") as s:
        async for kind, value in framework():
            if kind == "thinking":
                await s.think(value)
            elif kind == "text":
                await s.say(value)
            elif kind == "call":
                await wipe(**value[1])
            else:
                await s.finish(value)


async def loop() -> None:
    """Manual loop: the agent asks for a grant and uses it."""
    async with sayso.session("Tidy up.") as s:
        await s.think("Looking around.")
        granted = await s.ask("wipe", {"what": "photos"}, action="Wipe {what}.", consequence="They are gone.", irreversible=True)

        async def run(what: str) -> None:
            print("wiped", what)

        await s.call(granted, run)
        await s.finish("All is tidy.")


PATTERNS = {"middleware": middleware, "callback": callback, "decorator": decorator, "emitter": emitter, "loop": loop}


async def main(names: list[str]) -> None:
    for name in names or list(PATTERNS):
        try:
            await PATTERNS[name]()
        except sayso.Refused as refusal:
            print(f"{name}: nothing was wiped: {refusal}")


asyncio.run(main(sys.argv[1:]))
