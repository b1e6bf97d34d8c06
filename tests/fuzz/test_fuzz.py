"""A small run of the fuzzer, and proof that it sees what it is for: a planted miscompilation and a dying process."""

import os

import pytest

from tests.fuzz.__main__ import bisect_death, fuzz, run_child

PROGRAMS = {"quick": 25, "sample": 100, "full": 500}[os.environ.get("TEST_MODE", "sample")]


def test_programs_run_alike_eager_and_compiled():
    total = fuzz(PROGRAMS, seed=0)
    assert not total["different"]
    assert not total["deaths"]
    assert total["programs"] == PROGRAMS
    assert total["no_fallback"] >= 0.95 * PROGRAMS
    assert total["overlapping"] >= PROGRAMS * 0.3


def test_planted_miscompilation_is_caught(monkeypatch):
    monkeypatch.setenv("DLC_PLANT_BUG", "maximum")
    total = fuzz(25, seed=0, say=lambda text: None)
    assert total["different"]
    assert not total["deaths"]


@pytest.mark.slow
def test_death_is_reported_and_bisected(monkeypatch):
    monkeypatch.setenv("FUZZ_DIE_AT", "3")
    reports, running, _ = run_child(0, 6)
    assert [r["seed"] for r in reports] == [0, 1, 2]
    assert running == 3
    assert bisect_death(0, 3) == 3
    total = fuzz(5, seed=0, say=lambda text: None)
    assert [d["seed"] for d in total["deaths"]] == [3]
    assert total["programs"] == 5
