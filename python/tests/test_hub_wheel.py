"""The wheel of the command `sayso`, as `pip install sayso[hub]` installs it. `cargo xtask packages` builds it in `TEST_WHEELS`."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from pathlib import Path

import pytest

import sayso
import support
from support import ROOT, TIMEOUT_SECONDS, HubProcess, Listener

WHEELS = os.environ.get("TEST_WHEELS")


def version_in(path):
    found = re.search(r'^version = "(.+)"$', (ROOT / path).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_extra_wants_the_version_of_the_wheel():
    version = version_in("python/hub/pyproject.toml")
    assert version == version_in("python/pyproject.toml")
    assert f'hub = ["sayso-hub=={version}"]' in (ROOT / "python/pyproject.toml").read_text()


@pytest.mark.skipif(WHEELS is None, reason="`cargo xtask packages --only python-hub` builds the wheel")
def test_pip_install_gives_a_working_command(tmp_path, monkeypatch):
    venv.create(tmp_path / "clean", with_pip=True)
    binaries = tmp_path / "clean/bin"
    pip = [binaries / "python", "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--find-links", WHEELS, f"{ROOT / 'python'}[hub]"]
    subprocess.run(install, check=True, timeout=10 * TIMEOUT_SECONDS)
    shown = subprocess.run([*pip, "show", "--files", "sayso-hub"], capture_output=True, text=True, check=True).stdout
    files = [line.strip() for line in shown.split("Files:")[1].splitlines() if line.strip()]
    programs = [file for file in files if ".dist-info/" not in file]
    assert [Path(file).name for file in programs] == ["sayso"], files
    command = str(binaries / "sayso")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.strip() == f"sayso {version_in('python/hub/pyproject.toml')}"
    # The command is a complete hub: a question is asked, and the recorded events are valid.
    monkeypatch.setattr(support, "SAYSO", command)
    hub = HubProcess()
    listener = Listener(hub, "accept")
    client = sayso.hub(hub.url)
    with client.session("Tidy up.") as s:
        granted = s.ask("wipe", {"what": "photos"}, action="Wipe {what}.", consequence="It is gone.", irreversible=True)
        s.call(granted, lambda what: None)
    listener.wait_for_end()
    listener.validate()
    client.close()
    listener.close()
    hub.close()
