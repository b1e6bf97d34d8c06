"""The instrumented twin against the plain function: results, side effects, printed tracebacks, on every interpreter at
hand. The comparisons are twin_checks.py, run in a process of their own: they need no dlc.
"""

import functools
import json
import os
import subprocess
import sys

import pytest

CHECKS = os.path.join(os.path.dirname(__file__), "twin_checks.py")
INTERPRETERS = ["python3.10", "python3.11", "python3.12", "python3.13", "python3.14"]


@functools.cache
def interpreter(name):
    """A runnable interpreter of that version, found on PATH or among pyenv's, or None."""
    version = name.removeprefix("python")
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if os.path.isdir(os.path.join(root, "versions")):
        folders += [
            os.path.join(root, "versions", v, "bin") for v in sorted(os.listdir(os.path.join(root, "versions")))
        ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.exists(path) and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path


def checked(version, *what):
    path = interpreter(version)
    if path is None:
        pytest.skip(f"{version} is not installed")
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([path, CHECKS, *what], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def listed(different):
    return "\n\n".join(f"{name}:\n{how}" for name, how in different.items())


@pytest.mark.parametrize("version", INTERPRETERS)
def test_programs(version):
    """Every statement and expression: equal results, effects and tracebacks; every hook is called by some program."""
    result = checked(version, "programs", "twin_programs", "twin_programs_flow")
    assert not result["different"], listed(result["different"])
    assert result["count"] >= 100 and not result["refused"] and not result["unused"], result


@pytest.mark.parametrize("version", INTERPRETERS)
def test_library_workloads(version):
    result = checked(version, "workloads")
    assert not result["different"], listed(result["different"])
    assert result["count"] >= 31 and result["entered"] >= 500, result


@pytest.mark.parametrize("version", INTERPRETERS)
def test_most_of_the_library_has_twins(version):
    result = checked(version, "library")
    refused = result["refused"]
    assert result["count"] > 1000 and len(refused) <= 0.05 * result["count"], refused
    # The frozen copy of `site` was compiled by another build of the compiler.
    unproven = {name: why for name, why in refused.items() if " the code that runs" in why or "compiled" in why}
    unproven = {name: why for name, why in unproven.items() if not name.startswith("site.")}
    assert not unproven, unproven
