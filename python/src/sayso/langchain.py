"""LangChain: ``create_agent(model, tools, middleware=[..., SaysoMiddleware(policies)])``.

Put :class:`SaysoMiddleware` anywhere in the list: it replaces the tool that runs, so it asks about the arguments after all other
middleware. It also narrates the model's text. Without `create_agent`, use :func:`guard_tools` and :class:`SaysoCallback`.

Tools that a provider runs itself (web search, hosted MCP servers) do not come this way, so they are not gated.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as to_tool

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec

AgentMiddleware: Any
try:
    AgentMiddleware = importlib.import_module("langchain.agents.middleware").AgentMiddleware
except ImportError:  # only langchain-core or langgraph is installed
    AgentMiddleware = object


class SaysoCallback(BaseCallbackHandler):  # type: ignore[misc]
    """Narrates what a model writes: by tokens if it streams, else its whole text."""

    def __init__(self, session: AnySession | None = None) -> None:
        self._narrator = Narrator(session)
        self._streaming: set[UUID] = set()

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **_: Any) -> None:
        # Some models send a list of content blocks.
        blocks = token if isinstance(token, list) else [token]
        texts = [block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block for block in blocks]
        text = "".join(text for text in texts if isinstance(text, str))
        if text:
            self._streaming.add(run_id)
            self._narrator.write(text)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        if run_id not in self._streaming:
            for generation in response.generations:
                self._narrator.write(generation[0].text)
        self._streaming.discard(run_id)
        self._narrator.complete()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._streaming.discard(run_id)
        self._narrator.complete()
        self._narrator.error(error)


class _Denial:
    """Remembers that a call was denied, so that its message can say so."""

    text: str | None = None

    def __call__(self, text: str) -> str:
        self.text = text
        return text


def guard_tool(tool: BaseTool, guard: Guard, call_id: str | None = None, deny: Callable[[str], Any] | None = None) -> BaseTool:
    """Returns a copy of a tool that is gated around its function."""
    function = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    spec = find_spec(function)
    if spec is not None:
        attribute = "coroutine" if getattr(tool, "coroutine", None) else "func"
        tool = tool.model_copy(update={attribute: spec.function})
    policy = guard.policy_for(tool.name, function)
    public = frozenset(tool.args)

    def split(kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Separates the model's arguments from those that LangChain injects, such as the configuration."""
        own = {name: value for name, value in kwargs.items() if name in public}
        return own, {name: value for name, value in kwargs.items() if name not in public}

    gate: dict[str, Any] = {"policy": policy, "call_id": call_id}
    if deny is not None:
        gate["deny"] = deny

    @functools.wraps(type(tool)._run)
    def run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        own, injected = split(kwargs)
        values = {"input": list(args), **own} if args else own

        def call(bound: BoundCall) -> Any:
            rest = dict(bound.values)
            return tool._run(*(rest.pop("input") if args else ()), **rest, **injected)

        return guard.run_blocking(tool.name, values, call, **gate)

    @functools.wraps(type(tool)._arun)
    async def arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        own, injected = split(kwargs)
        values = {"input": list(args), **own} if args else own

        async def call(bound: BoundCall) -> Any:
            rest = dict(bound.values)
            return await tool._arun(*(rest.pop("input") if args else ()), **rest, **injected)

        return await guard.run(tool.name, values, call, **gate)

    guarded = tool.model_copy()
    # LangChain runs a tool without a coroutine in a thread, which nobody can cancel while the question is open. The gate must
    # run in the caller's task instead; only the function runs in a thread.
    members = {"_run": run, "_arun": arun, "ainvoke": BaseTool.ainvoke, "__module__": type(tool).__module__}
    guarded.__class__ = type(f"Guarded{type(tool).__name__}", (type(tool),), members)
    return guarded


def guard_tools(
    tools: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
) -> list[BaseTool]:
    """Returns gated copies of tools or functions, for agents without middleware."""
    guard = Guard(policies, session=session, default=default)
    return [guard_tool(tool if isinstance(tool, BaseTool) else to_tool(tool), guard) for tool in tools]


class SaysoMiddleware(AgentMiddleware):  # type: ignore[misc]
    """Asks before dangerous tools run, and reports what the agent does."""

    def __init__(
        self,
        policies: Policies | None = None,
        *,
        session: AnySession | None = None,
        default: Policy = ASK,
        narrates: bool = True,
    ) -> None:
        super().__init__()
        self._guard = Guard(policies, session=session, default=default)
        self._callback = SaysoCallback(session) if narrates else None

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        denial, guarded = self._guarded(request)
        return self._message(request, denial, handler(guarded))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        denial, guarded = self._guarded(request)
        return self._message(request, denial, await handler(guarded))

    def _guarded(self, request: Any) -> tuple[_Denial, Any]:
        denial = _Denial()
        if request.tool is None:
            return denial, request
        return denial, request.override(tool=guard_tool(request.tool, self._guard, request.tool_call["id"], denial))

    @staticmethod
    def _message(request: Any, denial: _Denial, result: Any) -> Any:
        if denial.text is None:
            return result
        call = request.tool_call
        return ToolMessage(denial.text, tool_call_id=call["id"], name=call["name"], status="error")

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._narrated(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._narrated(request))

    def _narrated(self, request: Any) -> Any:
        if self._callback is None or not hasattr(request.model, "callbacks"):
            return request
        known = request.model.callbacks
        callbacks = [*(known if isinstance(known, list) else []), self._callback]
        return request.override(model=request.model.model_copy(update={"callbacks": callbacks}))
