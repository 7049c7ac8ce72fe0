"""A scripted model that speaks the wire formats of OpenAI, Anthropic and Gemini.

A script is a list of turns. Turn n answers the nth request that offers tools. A turn is a dictionary with `text` and `calls`, a list
of `(tool, arguments)`, or with `error`, the text of an error.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]


class _ModelError(Exception):
    """The model refuses a request."""


class ScriptedModel:
    """An HTTP server with a script. `requests` are the bodies that it received."""

    def __init__(self, script: list[Turn]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self._position = 0
        self._lock = threading.Lock()
        self.ids = itertools.count(1)
        model = self

        class Handler(_Handler):
            model_server = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next_turn(self, body: dict[str, Any], has_tools: bool) -> Turn:
        with self._lock:
            self.requests.append(body)
            if not has_tools or self._position >= len(self.script):
                return {"text": "Done.", "calls": []}
            self._position += 1
            turn = {"text": "", "calls": [], **self.script[self._position - 1]}
            if "error" in turn:
                raise _ModelError(turn["error"])
            return turn

    def sent_text(self) -> str:
        """Everything that the model was sent, to see denials."""
        return json.dumps(self.requests, ensure_ascii=False)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model_server: ScriptedModel

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._json({"data": [], "object": "list"})

    def do_POST(self) -> None:
        body = json.loads(self._read() or b"{}")
        path = self.path.split("?")[0]
        try:
            if path.endswith("/chat/completions"):
                self._chat(body)
            elif path.endswith("/responses"):
                self._responses(body)
            elif path.endswith("/messages") and "/threads" not in path:
                self._anthropic(body)
            elif "enerateContent" in path:
                self._gemini(body, "stream" in path)
            elif "/threads/" in path:
                self._assistants(body, path)
            else:
                self._json({"input_tokens": 1})
        except _ModelError as error:
            # The members that the clients of OpenAI, Anthropic and Gemini read.
            detail = {"type": "invalid_request_error", "code": 400, "status": "INVALID_ARGUMENT", "message": str(error)}
            self._json({"type": "error", "error": detail}, 400)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            name = ""
            if isinstance(event, tuple):
                name, event = f"event: {event[0]}\n", event[1]
            text = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{name}data: {text}\n\n".encode())
            self.wfile.flush()

    def _id(self, prefix: str) -> str:
        return f"{prefix}{next(self.model_server.ids):04d}"

    # OpenAI chat completions

    def _chat(self, body: dict[str, Any]) -> None:
        turn = self.model_server.next_turn(body, bool(body.get("tools")))
        calls = [
            {
                "index": i,
                "id": self._id("call_"),
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for i, (name, arguments) in enumerate(turn["calls"])
        ]
        reason = "tool_calls" if calls else "stop"
        head = {"id": self._id("chat"), "created": 1, "model": "fake"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": turn["text"]}
            if calls:
                message["tool_calls"] = calls
            self._json(
                {
                    **head,
                    "object": "chat.completion",
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                    "usage": usage,
                }
            )
            return

        def chunks() -> Iterator[Any]:
            def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
                return {
                    **head,
                    "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                    **more,
                }

            for word in words(turn["text"]):
                yield chunk({"role": "assistant", "content": word})
            if calls:
                yield chunk({"role": "assistant", "tool_calls": calls})
            yield chunk({}, reason, usage=usage)
            yield "[DONE]"

        self._stream(chunks())

    # OpenAI Responses

    def _responses(self, body: dict[str, Any]) -> None:
        turn = self.model_server.next_turn(body, bool(body.get("tools")))
        items: list[dict[str, Any]] = []
        if turn["text"]:
            content = [{"type": "output_text", "text": turn["text"], "annotations": []}]
            items.append(
                {"type": "message", "id": self._id("msg_"), "role": "assistant", "status": "completed", "content": content}
            )
        for name, arguments in turn["calls"]:
            items.append(
                {
                    "type": "function_call",
                    "id": self._id("fc_"),
                    "call_id": self._id("call_"),
                    "name": name,
                    "arguments": json.dumps(arguments),
                    "status": "completed",
                }
            )
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        response = {
            "id": self._id("resp_"),
            "object": "response",
            "status": "completed",
            "model": "fake",
            "output": items,
            "created_at": 1,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1,
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "top_p": 1,
            "usage": usage,
        }
        if not body.get("stream"):
            self._json(response)
            return
        numbers = itertools.count()

        def events() -> Iterator[Any]:
            def event(kind: str, **members: Any) -> tuple[str, Any]:
                return kind, {"type": kind, "sequence_number": next(numbers), **members}

            yield event("response.created", response={**response, "status": "in_progress", "output": []})
            for index, item in enumerate(items):
                place = {"item_id": item["id"], "output_index": index}
                if item["type"] == "message":
                    part = {"type": "output_text", "text": "", "annotations": []}
                    yield event("response.output_item.added", output_index=index, item={**item, "content": []})
                    yield event("response.content_part.added", **place, content_index=0, part=part)
                    for word in words(turn["text"]):
                        yield event("response.output_text.delta", **place, content_index=0, delta=word, logprobs=[])
                    yield event("response.output_text.done", **place, content_index=0, text=turn["text"], logprobs=[])
                    yield event("response.content_part.done", **place, content_index=0, part=item["content"][0])
                else:
                    yield event(
                        "response.output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"}
                    )
                    yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
                    yield event("response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"])
                yield event("response.output_item.done", output_index=index, item=item)
            yield event("response.completed", response=response)

        self._stream(events())

    # Anthropic

    def _anthropic(self, body: dict[str, Any]) -> None:
        turn = self.model_server.next_turn(body, bool(body.get("tools")))
        blocks: list[dict[str, Any]] = [{"type": "text", "text": turn["text"]}] if turn["text"] else []
        blocks += [
            {"type": "tool_use", "id": self._id("toolu_"), "name": name, "input": arguments} for name, arguments in turn["calls"]
        ]
        reason = "tool_use" if turn["calls"] else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": self._id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self._json(message)
            return

        def events() -> Iterator[Any]:
            def event(kind: str, **members: Any) -> tuple[str, Any]:
                return kind, {"type": kind, **members}

            yield event("message_start", message={**message, "content": [], "stop_reason": None})
            for index, block in enumerate(blocks):
                if block["type"] == "text":
                    yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
                    for word in words(block["text"]):
                        yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": word})
                else:
                    yield event("content_block_start", index=index, content_block={**block, "input": {}})
                    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                    yield event("content_block_delta", index=index, delta=delta)
                yield event("content_block_stop", index=index)
            yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 1})
            yield event("message_stop")

        self._stream(events())

    # Gemini

    def _gemini(self, body: dict[str, Any], streams: bool) -> None:
        turn = self.model_server.next_turn(body, any(tool.get("functionDeclarations") for tool in body.get("tools", [])))

        def response(parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
            if finish:
                candidate["finishReason"] = finish
            usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
            return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}

        calls = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in turn["calls"]]
        if not streams:
            self._json(response(([{"text": turn["text"]}] if turn["text"] else []) + calls, "STOP"))
            return
        texts = [response([{"text": word}], None) for word in words(turn["text"])]
        self._stream(iter([*texts, response(calls or [{"text": ""}], "STOP")]))

    # OpenAI Assistants

    def _assistants(self, body: dict[str, Any], path: str) -> None:
        turn = self.model_server.next_turn(body, True)
        run = {
            "id": "run_1",
            "object": "thread.run",
            "created_at": 1,
            "thread_id": "t1",
            "assistant_id": "a1",
            "status": "in_progress",
            "instructions": "",
            "model": "fake",
            "tools": [],
            "metadata": {},
            "parallel_tool_calls": True,
        }

        def events() -> Iterator[Any]:
            yield "thread.run.created", run
            if turn["text"]:
                message = {
                    "id": self._id("msg_"),
                    "object": "thread.message",
                    "created_at": 1,
                    "thread_id": "t1",
                    "status": "in_progress",
                    "role": "assistant",
                    "content": [],
                    "metadata": {},
                    "attachments": [],
                }
                yield "thread.message.created", message
                for word in words(turn["text"]):
                    part = {"index": 0, "type": "text", "text": {"value": word, "annotations": []}}
                    yield (
                        "thread.message.delta",
                        {"id": message["id"], "object": "thread.message.delta", "delta": {"content": [part]}},
                    )
                whole = [{"type": "text", "text": {"value": turn["text"], "annotations": []}}]
                yield "thread.message.completed", {**message, "status": "completed", "content": whole}
            if turn["calls"]:
                calls = [
                    {"id": self._id("call_"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                    for name, arguments in turn["calls"]
                ]
                action = {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": calls}}
                yield "thread.run.requires_action", {**run, "status": "requires_action", "required_action": action}
            else:
                yield "thread.run.completed", {**run, "status": "completed"}
            yield "done", "[DONE]"

        self._stream(events())


def start_tidy_up_model(tool_prefix: str = "") -> ScriptedModel:
    """Starts a scripted model that calls `look`, then `wipe`, and ends. The examples use it instead of a real model."""
    return ScriptedModel(
        [
            {"text": "I look around first. ", "calls": [(tool_prefix + "look", {"where": "here"})]},
            {"text": "The photos are old. ", "calls": [(tool_prefix + "wipe", {"what": "photos"})]},
            {"text": "All is tidy.", "calls": []},
        ]
    )
