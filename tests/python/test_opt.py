"""python -m dlc.opt, for who has only the wheel."""

import subprocess
import sys


def run(*arguments, text=""):
    return subprocess.run([sys.executable, "-m", "dlc.opt", *arguments], input=text, capture_output=True, text=True)


def test_help_lists_the_phases():
    result = run("--help")
    assert result.returncode == 0
    assert "fused" in result.stdout


def test_module_round_trips_from_standard_input():
    result = run(text="func.func @f() { return }")
    assert result.returncode == 0
    assert "func.func @f()" in result.stdout


def test_malformed_module_is_a_diagnostic_and_status_1():
    result = run(text="func.func @f( { return }")
    assert result.returncode == 1
    assert "error" in result.stderr
