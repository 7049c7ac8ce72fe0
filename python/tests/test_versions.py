"""The versions that `pyproject.toml` and the README state are those that are tested."""

from __future__ import annotations

import re

import pytest

from support import ROOT

PROJECT = (ROOT / "python/pyproject.toml").read_text()
README = (ROOT / "python/README.md").read_text()
#: The extras of frameworks, each with its requirement and its lower bound.
EXTRAS = re.findall(r'^([a-z-]+) = \["([a-z0-9-]+)>=([0-9.]+)"\]$', PROJECT.split("[project.optional-dependencies]")[1], re.MULTILINE)
#: The environments in which adapters are tested whose extra has another name.
ENVIRONMENTS = {"langgraph": "langchain"}


def pinned(environment, library):
    pins = (ROOT / f"python/requirements/{environment}.txt").read_text()
    found = re.findall(rf"^{library}==(\S+)", pins, re.MULTILINE)
    assert found, f"{library} is not pinned in {environment}.txt"
    return found


def test_every_framework_has_an_extra():
    modules = {file.stem for file in (ROOT / "python/src/sayso").glob("[a-z]*.py")} - {"errors"}
    assert {name.replace("-", "_") for name, _, _ in EXTRAS} == modules


@pytest.mark.parametrize(("extra", "library", "bound"), EXTRAS)
def test_the_lower_bound_of_an_extra_is_the_version_that_is_tested(extra, library, bound):
    (version,) = pinned(ENVIRONMENTS.get(extra, extra), library)
    assert version == bound or version.startswith(f"{bound}."), f"{library} {version} is tested, not {bound}"
    assert re.search(rf"^\| .* \| {library} {re.escape(version)} \|$", README, re.MULTILINE), "the README states another version"


def test_the_lower_bound_of_websockets_is_tested():
    bound = re.search(r'^dependencies = \["websockets>=([0-9]+)"\]$', PROJECT, re.MULTILINE)
    assert bound is not None
    files = (ROOT / "python/requirements").glob("*.txt")
    tested = {version for file in files for version in re.findall(r"^websockets==([0-9]+)\.", file.read_text(), re.MULTILINE)}
    assert min(tested, key=int) == bound[1]


def test_the_versions_of_python_are_those_that_are_tested():
    stages = re.findall(r'"python-(3\.[0-9]+)"', (ROOT / "xtask/src/packages/python.rs").read_text())
    classified = re.findall(r"Python :: (3\.[0-9]+)", PROJECT)
    assert classified == stages
    assert f"Python {stages[0]} to {stages[-1]}" in README
