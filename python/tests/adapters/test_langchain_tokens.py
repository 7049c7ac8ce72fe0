"""The tokens that LangChain's callbacks get are texts or lists of content blocks, depending on the model."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import pytest

pytest.importorskip("langchain_core")

import sayso
from sayso.langchain import SaysoCallback

RESPONSE = SimpleNamespace(generations=[[SimpleNamespace(text="The whole text.")]])


@pytest.mark.parametrize(
    ("tokens", "heard"),
    [
        (["It is ", "raining."], "It is raining."),
        ([[{"type": "text", "text": "It is "}], [{"type": "tool_call_chunk", "args": "{}"}], ["raining", "."]], "It is raining."),
        ([], "The whole text."),
    ],
    ids=["texts", "content blocks", "no tokens"],
)
def test_the_text_of_a_model_is_heard_by_tokens_or_as_a_whole(tokens, heard, hub, listen):
    listener = listen()
    client = sayso.hub(hub.url)
    with client.session("Weather.") as s:
        callback, run = SaysoCallback(s), uuid.uuid4()
        for token in tokens:
            callback.on_llm_new_token(token, run_id=run)
        callback.on_llm_end(RESPONSE, run_id=run)
    client.close()
    listener.wait_for_end()
    assert listener.text() == heard
    listener.validate()
