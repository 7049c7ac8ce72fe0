"""Canonical JSON, redaction, texts, imports, and the paths of the agent API. The expected values come from the Rust code."""

from __future__ import annotations

import datetime
import decimal
import enum
import importlib
import json
import random
import subprocess
import sys

import pytest

import sayso
from sayso._json import format_number, to_json_value
from sayso._redaction_table import TABLE
from sayso._text import humanize
from support import ROOT, SAYSO

REDACTION = json.loads((ROOT / "docs/redaction.json").read_text())


def test_the_redaction_table_matches_the_rust_code():
    assert REDACTION == TABLE
    printed = subprocess.run([SAYSO, "schema", "--redaction", "json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == TABLE


@pytest.mark.parametrize("example", REDACTION["examples"], ids=lambda example: example["text"][:30])
def test_each_example_is_redacted_as_in_rust(example):
    text, count = sayso.redact(example["text"])
    assert text == example["redacted"]
    assert (count == 0) == (example["text"] == text)
    assert sayso.redact(text) == (text, 0), "redacting twice changes nothing"


@pytest.mark.parametrize("example", REDACTION["examples"], ids=lambda example: example["text"][:30])
def test_pieces_are_redacted_like_the_whole_text(example):
    text = f"Before. {example['text']} After."
    whole = sayso.redact(text)[0]
    source = random.Random(7)
    for _ in range(20):
        redactor, out, rest = sayso.StreamRedactor(), "", text
        while rest:
            size = source.randint(1, 9)
            out += redactor.push(rest[:size])
            rest = rest[size:]
        assert out + redactor.push("", complete=True) == whole


def test_a_long_private_key_in_pieces_is_one_secret():
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0123456789\n" * 2000 + "-----END PRIVATE KEY-----"
    redactor, out = sayso.StreamRedactor(), ""
    text = f"x {key} y"
    for at in range(0, len(text), 7):
        out += redactor.push(text[at : at + 7])
    assert out + redactor.push("", complete=True) == "x [redacted] y"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e21, "1e+21"), (1e20, "100000000000000000000"), (0.000001, "0.000001"), (1e-7, "1e-7"), (5.0, "5"), (-1.5, "-1.5"),
     (0.1 + 0.2, "0.30000000000000004"), (333333333.33333329, "333333333.3333333"), (-0.0, "0"), (5e-324, "5e-324"),
     (1.7976931348623157e308, "1.7976931348623157e+308"), (123e-20, "1.23e-18")],
)  # fmt: skip
def test_numbers_are_written_as_ecmascript_does(number, text):
    assert format_number(number) == text


def test_canonical_json_sorts_by_utf16_and_escapes_only_what_it_must():
    value = {"\ufb33": 3, "\U0001f600": 2, "€": 1, "a": '\u2028\x07"\\/é'}
    assert sayso.canonical_json(value) == '{"a":"\u2028\\u0007\\"\\\\/é","€":1,"\U0001f600":2,"\ufb33":3}'


def test_python_values_are_converted_to_json_values():
    class Colour(enum.Enum):
        RED = "red"

    assert to_json_value(decimal.Decimal("5.10")) == "5.10"
    assert to_json_value(2**60) == str(2**60)
    assert to_json_value(float("nan")) == "nan"
    assert to_json_value(Colour.RED) == "red"
    assert to_json_value(datetime.date(2026, 1, 2)) == "2026-01-02"
    assert to_json_value({3, 1, 2}) == [1, 2, 3]
    assert to_json_value(b"\x00") == "base64:AA=="
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(sayso.InvalidRequest):
        to_json_value(deep)


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("send", "Send"),
        ("send_email", "Send email"),
        ("sendEmail", "Send email"),
        ("get_HTTP_page", "Get HTTP page"),
        ("__", "__"),
    ],
)
def test_a_tool_name_becomes_readable(name, readable):
    assert humanize(name) == readable


def test_the_package_imports_no_framework():
    code = "import sys, sayso; bad = {'langchain','openai','anthropic','pydantic','crewai','strands','agents'} & set(sys.modules); sys.exit(bool(bad))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("adapter", ["langchain", "openai_agents", "crewai", "strands", "smolagents", "pydantic_ai", "autogen"])
def test_an_adapter_without_its_framework_says_what_is_missing(adapter):
    with pytest.raises(ImportError) as missing:
        importlib.import_module(f"sayso.{adapter}")
    assert missing.value.name is not None


def test_the_hub_serves_every_path_of_the_openapi_description(hub):
    import http.client

    description = json.loads((ROOT / "docs/agent-api.json").read_text())
    for path, operations in description["paths"].items():
        for method in operations:
            connection = http.client.HTTPConnection(hub.url.removeprefix("http://"))
            concrete = path.replace("{session_id}", "sess_1").replace("{reply_token}", "rpl_1")
            connection.request(method.upper(), concrete, "{}", {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = response.read().decode()
            assert response.status != 405, (method, path, body)
            assert "path" not in body or response.status != 404, (method, path, body)
