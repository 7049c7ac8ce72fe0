"""OpenAI SDK: chat completions, the Responses API and the Assistants API.

:class:`Tools` runs the tool calls of a model, each behind its gate: ``await tools.run_chat(message.tool_calls)``,
``await tools.run_responses(response.output)``, or ``tools.assistant_handler(client)`` as the event handler of a run stream.
:func:`guard_functions` gates the functions of the SDK's own Responses tool runner. :func:`narrator` and :func:`narrate_chat` narrate
text, and ``with narrate_errors():`` around your requests narrates their exceptions.

Tools that run at the provider (web search, hosted MCP servers) are not gated.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import Signature, find_spec


class Tools:
    """The functions that a model may call."""

    def __init__(
        self,
        functions: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]],
        policies: Policies | None = None,
        *,
        session: AnySession | None = None,
        default: Policy = ASK,
    ) -> None:
        self._guard = Guard(policies, session=session, default=default)
        self._session = session
        named = functions.items() if isinstance(functions, Mapping) else [(_name(function), function) for function in functions]
        self._functions = dict(named)

    async def call(self, name: str, arguments: str | Mapping[str, Any], *, call_id: str | None = None) -> str:
        """Makes one call and returns the text for the model. Never raises, except if the caller is cancelled."""
        function = self._functions.get(name)
        if function is None:
            return f"There is no tool {name!r}."
        spec = find_spec(function)
        target = spec.function if spec is not None else function
        try:
            values = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
            signature = Signature(target)
            values = signature.by_name((), values)
        except (ValueError, TypeError) as error:
            return f"The arguments are not valid: {error}"

        async def run(bound: BoundCall) -> Any:
            if inspect.iscoroutinefunction(target):
                return await signature.call(target, bound.values)
            return await asyncio.to_thread(signature.call, target, bound.values)

        policy = self._guard.policy_for(name, function)
        try:
            result = await self._guard.run(name, values, run, policy=policy, call_id=call_id)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return f"The tool failed: {error}"
        return result if isinstance(result, str) else json.dumps(result, default=str)

    async def run_chat(self, tool_calls: Iterable[Any] | None) -> list[dict[str, Any]]:
        """Makes the calls of a chat completion at the same time. Returns the messages for the model."""

        async def run(call: Any) -> dict[str, Any]:
            text = await self.call(call.function.name, call.function.arguments, call_id=call.id)
            return {"role": "tool", "tool_call_id": call.id, "content": text}

        return list(await asyncio.gather(*(run(call) for call in tool_calls or [])))

    async def run_responses(self, output: Iterable[Any]) -> list[dict[str, Any]]:
        """Makes the function calls in the output of a response at the same time. Returns the items for the model."""

        async def run(item: Any) -> dict[str, Any]:
            text = await self.call(item.name, item.arguments, call_id=item.call_id)
            return {"type": "function_call_output", "call_id": item.call_id, "output": text}

        return list(await asyncio.gather(*(run(item) for item in output if item.type == "function_call")))

    async def run_required_action(self, run: Any) -> list[dict[str, Any]]:
        """Makes the calls that a run of an assistant requires. Returns the tool outputs."""
        calls = run.required_action.submit_tool_outputs.tool_calls
        messages = await self.run_chat(calls)
        return [{"tool_call_id": message["tool_call_id"], "output": message["content"]} for message in messages]

    def assistant_handler(self, client: Any) -> Any:
        """Returns an event handler for the run stream of an assistant: it narrates, gates and submits the outputs."""
        from openai import AsyncAssistantEventHandler

        tools, narrator = self, Narrator(self._session)

        class Handler(AsyncAssistantEventHandler):  # type: ignore[misc]
            async def on_text_delta(self, delta: Any, snapshot: Any) -> None:
                narrator.write(delta.value or "")

            async def on_text_done(self, text: Any) -> None:
                narrator.complete()

            async def on_exception(self, exception: Exception) -> None:
                narrator.error(exception)

            async def on_event(self, event: Any) -> None:
                if event.event != "thread.run.requires_action":
                    return
                outputs = await tools.run_required_action(event.data)
                stream = client.beta.threads.runs.submit_tool_outputs_stream(
                    thread_id=event.data.thread_id,
                    run_id=event.data.id,
                    tool_outputs=outputs,
                    event_handler=tools.assistant_handler(client),
                )
                async with stream as events:
                    await events.until_done()

        return Handler()


def _name(function: Callable[..., Any]) -> str:
    spec = find_spec(function)
    return spec.name if spec is not None else function.__name__


def guard_functions(
    functions: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
) -> list[Any]:
    """Returns gated copies of `AsyncRegisteredFunction`, for `AsyncResponsesToolRunner`."""
    guard = Guard(policies, session=session, default=default)

    def wrap(function: Any) -> Any:
        name = function.tool["name"]

        async def execute(values: dict[str, Any]) -> Any:
            async def call(bound: BoundCall) -> Any:
                return await function.execute(dict(bound.values))

            return await guard.run(name, values, call)

        return dataclasses.replace(function, execute=execute)

    return [wrap(function) for function in functions]


def narrator(*, session: AnySession | None = None) -> Callable[[Any], Awaitable[None]]:
    """Returns an `on_event` for the stream of a response that narrates its text."""
    narrates = Narrator(session)

    async def on_event(event: Any) -> None:
        if event.type == "response.output_text.delta":
            narrates.write(event.delta)
        elif event.type in ("response.output_text.done", "response.completed"):
            narrates.complete()
        elif event.type == "response.failed":
            narrates.error(Exception(getattr(event.response.error, "message", None) or "The model failed."))

    return on_event


@contextlib.contextmanager
def narrate_errors(*, session: AnySession | None = None) -> Iterator[None]:
    """Narrates an exception that ends the block, such as an error of the model, and lets it pass."""
    with Narrator(session).narrating():
        yield


async def narrate_chat(chunks: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the chunks of a streamed chat completion, and narrates its text."""
    narrates = Narrator(session)
    with narrates.narrating():
        async for chunk in chunks:
            for choice in chunk.choices[:1]:
                narrates.write(getattr(choice.delta, "content", None) or "")
            yield chunk


__all__ = ["Tools", "guard_functions", "narrate_chat", "narrate_errors", "narrator"]
