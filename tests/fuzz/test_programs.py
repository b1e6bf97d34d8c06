"""A small run of the program fuzzer, and proof that it sees what it is for: stale code, lost effects, a dying process."""

import functools
import os

import dlc
import pytest

from tests.fuzz.programs.__main__ import fuzz, run_child
from tests.fuzz.programs.execute import Difference, check, write
from tests.fuzz.programs.minimize import minimize, verdict
from tests.fuzz.programs.scaffold import generate

PROGRAMS = {"quick": 20, "sample": 60, "full": 600}[os.environ.get("TEST_MODE", "sample")]


def test_programs_run_alike_eager_and_compiled():
    totals = fuzz(PROGRAMS, seed=0)
    assert not totals.different
    assert not totals.deaths
    assert totals.programs == PROGRAMS
    assert totals.counts["calls"] >= 36 * PROGRAMS
    assert totals.counts["raised"] <= 0.3 * totals.counts["calls"]


def test_a_seed_gives_one_program():
    assert generate(7) == generate(7) != generate(8)


def remembering(function):
    """What a tracer without guards does: the first result for each combination of sizes, forever."""
    known = {}

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        key = str([tuple(a.shape) for a in args if isinstance(a, dlc.Tensor)])
        if key not in known:
            known[key] = function(*args, **kwargs)
        return known[key]

    return wrapper


def quiet(function):
    """Loses what is printed."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        import contextlib
        import io

        with contextlib.redirect_stdout(io.StringIO()):
            return function(*args, **kwargs)

    return wrapper


def copying(function):
    """Works on copies of tensor arguments, so that writes to them are lost."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*[a.clone() if isinstance(a, dlc.Tensor) else a for a in args], **kwargs)

    return wrapper


@pytest.mark.parametrize(
    "fault, kinds",
    [(remembering, {"result", "state", "stdout"}), (quiet, {"stdout"}), (copying, {"arguments", "result", "state"})],
)
def test_planted_faults_are_caught(fault, kinds, tmp_path):
    found = set()
    for seed in range(25):
        try:
            check(write(generate(seed), tmp_path, seed), fault)
        except Difference as difference:
            found.add(difference.kind)
    assert found & kinds


def test_a_failing_program_is_shrunk(tmp_path):
    def fails(source):
        try:
            check(write(source, tmp_path, 0), quiet)
        except Difference as difference:
            return difference.signature
        except Exception:
            return None

    seed = next(s for s in range(30) if fails(generate(s)) == "stdout")
    source, kind = minimize(generate(seed), fails, limit=400)
    assert kind == "stdout"
    assert "print" in source or "stdout.write" in source
    assert len(source) < len(generate(seed)) / 2
    assert verdict(source) is None


@pytest.mark.slow
def test_death_is_reported(monkeypatch):
    monkeypatch.setenv("FUZZ_DIE_AT", "3")
    reports, running, _ = run_child(0, 6)
    assert [r["seed"] for r in reports] == [0, 1, 2]
    assert running == 3
    totals = fuzz(5, seed=0, say=lambda text: None)
    assert [d["seed"] for d in totals.deaths] == [3]
    assert totals.programs == 5
