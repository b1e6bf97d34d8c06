"""The tuner from Python: budgets, what later processes and other modes make of it, and the file that ships it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import dlc
import numpy as np
import pytest

PROGRAM = r"""
import json, sys, warnings
import dlc as torch
import dlc.nn.functional as F

settings = json.loads(sys.argv[1])
if "load" in settings:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loaded = torch.tuning.load(settings["load"]), [str(w.message) for w in said]
else:
    loaded = None

def f(x, w):
    y = torch.tanh(x * 2 + w)
    return torch.softmax(y, -1), y.sum(0)

torch.manual_seed(0)
x, w = torch.randn(64, 256), torch.randn(256)
g = torch.compile(f, mode=settings.get("mode"), options=settings.get("options"))
results = [t.tolist() for t in g(x, w)]
entries = torch.tuning.export(settings["export"]) if "export" in settings else None
print(json.dumps({"results": results, "loaded": loaded, "entries": entries, "stats": torch.compile_stats()}))
"""


def run(cache, settings=None, **env):
    names = {k: v for k, v in os.environ.items() if not k.startswith("DLC_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings or {})],
        env={**names, "DLC_CACHE_DIR": str(cache), "DLC_LOGS": "compile_time,tuning", **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def measured(log):
    return sum(map(int, re.findall(r"(\d+) candidates measured", log)))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def tune(cache, **settings):
    """Until every kernel is decided: rounds in which others use the processor do not count, so that may take a while."""
    total = 0
    for _ in range(12):
        answer, log = run(cache, {"options": {"tuning_seconds": 60}, **settings})
        total += measured(log)
        if "kernels tuned" not in log or ", 0 left" in log:
            return answer, total
    raise AssertionError("the machine is never quiet: " + log)


def close(results, other):
    for a, b in zip(results, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_a_default_compilation_measures_nothing(cache):
    answer, log = run(cache)
    assert measured(log) == 0 and answer["stats"]["kernels"] > 0
    assert not (cache / "tuning").exists() or not list((cache / "tuning").glob("*.o"))


def test_what_was_measured_is_measured_once(cache):
    plain, _ = run(cache)
    first, candidates = tune(cache)
    assert candidates >= 2
    close(first["results"], plain["results"])
    for settings in ({"options": {"tuning_seconds": 60}}, {}, {"mode": "max-autotune"}):
        again, log = run(cache, settings)
        assert measured(log) == 0, settings
        assert again["results"] == first["results"]
        assert again["stats"]["llvm_compilations"] == 0


def test_a_budget_that_ends_early_leaves_the_default_and_no_entry(cache):
    plain, _ = run(cache)
    answer, log = run(cache, {"options": {"tuning_seconds": 1e-9}, "export": str(cache) + ".json"})
    assert answer["results"] == plain["results"] and answer["entries"] == 0
    assert "0 kernels tuned, 0 changed" in log
    # A later process with more time goes on.
    _, log = run(cache, {"options": {"tuning_seconds": 60}})
    assert measured(log) >= 2


@pytest.mark.slow
def test_mode_and_knob_give_the_budget(cache):
    _, log = run(cache, {"mode": "max-autotune"}, DLC_TUNING_SECONDS="0")
    assert measured(log) == 0
    _, log = run(cache, {"mode": "max-autotune"}, DLC_TUNING_SECONDS="60")
    assert measured(log) >= 2


def test_the_bar(cache):
    for progress, shown in ((None, False), (False, False), (True, True)):
        options = {"tuning_seconds": 1e-9} | ({} if progress is None else {"tuning_progress": progress})
        _, log = run(cache, {"options": options}, DLC_LOGS="")
        assert ("tuning f [" in log and "kernels together" in log) == shown


@pytest.fixture
def exported(cache, tmp_path):
    file = tmp_path / "tuning.json"
    tune(cache)
    answer, _ = run(cache, {"export": str(file)})
    content = json.loads(file.read_text())
    assert answer["entries"] == len(content["entries"]) >= 1
    return file, content, answer


def schedules(dump):
    return sorted(re.findall(r"schedule = (#kernel.schedule<.*?>)", next(dump.glob("*scheduled.mlir")).read_text()))


def test_an_exported_file_decides_in_another_cache(exported, tmp_path):
    file, content, answer = exported
    other, log = run(tmp_path / "other", {"load": str(file)})
    assert other["loaded"] == [len(content["entries"]), []]
    assert measured(log) == 0 and other["results"] == answer["results"]
    # The file is obeyed: whatever schedule it has is used, and results do not depend on it.
    for entry in content["entries"]:
        entry["value"][0] = "schedule #kernel.schedule<unroll = 1, tail = mask>"
    file.write_text(json.dumps(content))
    other, _ = run(tmp_path / "third", {"load": str(file)}, DLC_DUMP_DIR=str(tmp_path / "dump"))
    assert all("unroll = 1" in s and "tail = mask" in s for s in schedules(tmp_path / "dump"))
    close(other["results"], answer["results"])


@pytest.mark.parametrize(
    "schedule", ["#kernel.schedule<unroll = 99>", "#kernel.schedule<order = [q]>", "nonsense", "#"]
)
def test_entries_that_make_no_sense_are_not_used(exported, tmp_path, schedule):
    file, content, answer = exported
    for entry in content["entries"]:
        entry["value"][0] = "schedule " + schedule
    file.write_text(json.dumps(content))
    other, _ = run(tmp_path / "other", {"load": str(file)})
    close(other["results"], answer["results"])
    assert other["stats"]["fallbacks"] == 0


def test_entries_of_other_machines_are_left_out_with_a_message(exported, tmp_path):
    file, content, answer = exported
    for entry in content["entries"]:
        entry["key"][2] = "cpu z80 +ldir 8"
    file.write_text(json.dumps(content))
    other, _ = run(tmp_path / "other", {"load": str(file)})
    n = len(content["entries"])
    assert other["loaded"][0] == 0
    (message,) = other["loaded"][1]
    assert f"{n} of {n} entries" in message and "`cpu z80 +ldir 8` and not `cpu " in message
    close(other["results"], answer["results"])


def test_files_that_are_none_are_refused(tmp_path):
    file = tmp_path / "file"
    for text in ("", "{}", "[]", '{"format": "dlc tuning file", "version": 2, "entries": []}'):
        file.write_text(text)
        with pytest.raises(ValueError, match="is no tuning file"):
            dlc.tuning.load(file)
    with pytest.raises(FileNotFoundError):
        dlc.tuning.load(tmp_path / "absent")


@pytest.mark.slow
def test_damaged_entries_are_measured_again(cache):
    tune(cache)
    for file in [*(cache / "tuning").glob("*.o"), *cache.glob("*.o")]:
        content = pathlib.Path(file).read_bytes()
        file.write_bytes(content[:-3])
    _, log = run(cache, {"options": {"tuning_seconds": 60}})
    assert measured(log) >= 2


@pytest.mark.slow
def test_two_processes_tune_at_the_same_time(cache):
    names = {k: v for k, v in os.environ.items() if not k.startswith("DLC_")}
    settings = json.dumps({"options": {"tuning_seconds": 20}})
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, settings],
            env={**names, "DLC_CACHE_DIR": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [p.communicate(timeout=300) for p in both]
    assert [p.returncode for p in both] == [0, 0], outputs
    close(*(json.loads(out.splitlines()[-1])["results"] for out, _ in outputs))


def test_settings_are_checked():
    for options in ({"tuning_seconds": "long"}, {"tuning_seconds": -1}, {"tuning_seconds": float("nan")}):
        with pytest.raises(RuntimeError, match="tuning_seconds"):
            dlc.compile(lambda x: x, options=options)
    f = dlc.compile(lambda x: x, options={"tuning_seconds": 3, "tuning_progress": False})
    assert f.tuning_seconds == 3.0 and f.tuning_progress is False
    assert dlc.compile(lambda x: x, mode="max-autotune").tuning_seconds == dlc.config.tuning_seconds
