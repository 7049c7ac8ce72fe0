"""The package as a new user gets it: `pip install ./python` in a clean environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv

from support import ROOT, TIMEOUT_SECONDS

FOLDER = ROOT / "python"
FIRST_PROGRAM = re.search(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)


def test_pip_install_in_a_clean_environment(hub, listen, tmp_path):
    listener = listen("accept")
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", str(FOLDER)], check=True, timeout=10 * TIMEOUT_SECONDS)
    listed = json.loads(subprocess.run([*pip, "list", "--format=json"], capture_output=True, check=True).stdout)
    assert {package["name"] for package in listed} <= {"sayso", "websockets", "pip", "setuptools"}
    shown = subprocess.run([*pip, "show", "--files", "sayso"], capture_output=True, text=True, check=True).stdout
    files = [line.strip() for line in shown.split("Files:")[1].splitlines() if line.strip()]
    assert "sayso/py.typed" in files
    assert all(file.startswith(("sayso/", "sayso-")) for file in files), files
    assert FIRST_PROGRAM is not None
    # The program runs outside the checkout, with nothing but what was installed.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SAYSO_"))}
    result = subprocess.run(
        [python, "-c", FIRST_PROGRAM[1]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment, "SAYSO_URL": hub.url},
        timeout=TIMEOUT_SECONDS,
    )
    assert result.returncode == 0, result.stderr
    assert "sent 5.00 to Ben" in result.stdout
    listener.wait_for_end()
    listener.validate()
