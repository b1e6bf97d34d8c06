"""The harness of `./dev bench`, as far as it needs no peer: models, judgement of the machine, roofline, report."""

import copy
import inspect
import json
import sys
from pathlib import Path

import dlc
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "bench"), str(ROOT / "tools" / "demo")]

import bench  # noqa: E402
import candidates  # noqa: E402
import fresh  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import programs  # noqa: E402
import tables  # noqa: E402

TINY = {
    "small_mlp": {"width": 8, "batch": 2},
    "mlp": {"width": 8, "batch": 3},
    "pointwise": {"rows": 5, "width": 7},
    "softmax_ce": {"rows": 4, "classes": 9},
    "encoder": {"layers": 2, "width": 16, "heads": 2, "length": 6},
    "decode": {"layers": 2, "width": 16, "heads": 2, "length": 3, "steps": 2},
    "resnet18": {"width": 4, "size": 32},
    "mobilenet": {"multiplier": 0.25, "size": 32},
    "rnn": {"batch": 2, "length": 4, "features": 3, "hidden": 5},
    "train_mlp": {"width": 8, "batch": 4},
    "train_gpt": {"layers": 1, "width": 16, "heads": 2, "batch": 2, "length": 5},
    "train_cnn": {"width": 2, "batch": 3},
}


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    threads = dlc.get_num_threads()
    yield
    dlc.set_num_threads(threads)


def test_every_model_has_a_file_and_sizes():
    assert sorted(models.NAMES) == sorted(n for names in models.FILES.values() for n in names) == sorted(TINY)
    assert set(models.TRAINING) < set(models.NAMES)
    for file, names in models.FILES.items():
        code = programs.load(file, "dlc", programs.HERE / "models")
        for name in names:
            parameters = inspect.signature(getattr(code, name)).parameters
            assert getattr(code, name).__doc__, name
            for parameter, values in measure.GROWTH[name].items():
                assert parameters[parameter].default in values, (name, parameter)


pytestmark = pytest.mark.filterwarnings("error::UserWarning")  # dlc warns when it could not compile something


@pytest.mark.parametrize("model", models.NAMES)
def test_compiled_models_give_what_eager_ones_give(model):
    runners = [candidates.runner(c, model, 1, TINY[model]) for c in ("dlc eager", "dlc compiled")]
    eager, compiled = (r.start(4) for r in runners)
    assert len(eager) == 4 and all(np.isfinite(v).all() for v in eager)
    assert candidates.gap(compiled, eager) < 1e-5
    if model in models.TRAINING:  # the optimizer moves the weights
        assert float(eager[0]) != float(eager[3])


def test_weights_are_the_same_in_every_load():
    one, two = (programs.model("mobilenet", "dlc", **TINY["mobilenet"]) for _ in range(2))
    for (name, a), (_, b) in zip(one.module.state_dict().items(), two.module.state_dict().items(), strict=True):
        assert dlc.equal(a, b), name
    assert not one.module.training


def test_a_decoding_step_takes_its_outputs_as_inputs_and_starts_anew():
    runner = candidates.runner("dlc eager", "decode", 1, TINY["decode"])
    lengths = [runner.call()[1].shape[2] for _ in range(5)]
    assert lengths == [4, 5, 4, 5, 4]


@pytest.mark.parametrize(("kind", "most"), [("bf16", 2e-2), ("int8", 5e-2)])
def test_weights_kept_in_fewer_bits_give_nearly_the_same(kind, most):
    eager, compiled, exact = (
        candidates.runner(c, "decode", 1, {**TINY["decode"], "weights": w}).start()
        for c, w in (("dlc eager", kind), ("dlc compiled", kind), ("dlc eager", "f32"))
    )
    assert candidates.gap(compiled, eager) < 1e-5
    assert 0 < candidates.gap(eager, exact) < most


def test_onnx_runtimes_do_not_train():
    assert (
        candidates.runner("ONNX Runtime", "train_mlp", 1) is None
        and candidates.runner("OpenVINO", "train_cnn", 1) is None
    )


def test_a_difference_is_found():
    a = [np.ones(3, np.float32), np.full(3, 4.0, np.float32)]
    b = [np.ones(3, np.float32), np.full(3, 4.2, np.float32)]
    assert candidates.gap(a, a) == 0 and candidates.gap(b, a) == pytest.approx(0.05, rel=1e-3)


QUIET = {"others": 0.01, "load": 0.2, "cores": 2, "spread": 0.01, "scaling": 0.99}


def test_a_quiet_machine_passes():
    assert machine.verdict(QUIET) == []
    assert machine.verdict({**QUIET, "load": None, "scaling": None}) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"others": 0.4}, "other processes used 0.40 cores"),
        ({"load": 1.7}, "load average of the last minute is 1.70"),
        ({"spread": 0.2}, "equal loops differ by 20 %"),
        ({"scaling": 0.6}, "reach 0.60 of the FMA peak"),
    ],
)
def test_a_shared_machine_is_refused_with_the_reason(change, says, monkeypatch):
    found = {**QUIET, **change}
    assert len(machine.verdict(found)) == 1 and says in machine.verdict(found)[0]
    monkeypatch.setattr(machine, "sample", lambda threads, with_load: dict(found))
    report = {}
    with pytest.raises(SystemExit, match="not quiet"):
        bench.must_be_quiet(2, False, True, report)
    report = {}
    bench.must_be_quiet(2, True, True, report)
    assert report["forced"] and says in report["quiet"][0]["reasons"][0]


def test_a_disturbed_row_is_timed_again_while_there_is_patience(monkeypatch):
    calls = {"n": 0}

    class Counting:
        def call(self):
            calls["n"] += 1

    states = iter([["busy"], [], ["busy"], [], []])  # waits, times, was disturbed, times again
    monkeypatch.setattr(measure, "disturbance", lambda threads: next(states))
    found, disturbed = measure.times({"a": {"x": Counting()}}, 1, 0.0, 1, patience=60)
    assert set(found["a"]) == {"x"} and disturbed == {} and next(states, None) is None
    once = calls["n"] // 2
    monkeypatch.setattr(measure, "disturbance", lambda threads: ["busy"])
    found, disturbed = measure.times({"a": {"x": Counting()}}, 1, 0.0, 1)
    assert disturbed == {"a": ["busy"]} and calls["n"] == 3 * once
    with pytest.raises(SystemExit, match="a: busy"):
        bench.refuse({}, ["a: busy"], False)


def test_the_machine_is_measured():
    found = machine.sample(1, 0.05)
    assert found["cores"] >= 1 and found["spread"] >= 0 and found["scaling"] is None
    assert machine.fma_peak(1) > 1
    assert dlc._C._bandwidth(1 << 16, False, False) > 0.1 and dlc._C._bandwidth(1 << 16, True, False) > 0.1
    assert fresh.resident() > 1 << 20


MACHINE = {
    "threads": 2,
    "fma": {"1": 100.0, "2": 200.0},
    "levels": [
        {"level": "L2", "holds": 1 << 20, "read 1": 50, "read 2": 100, "copy 1": 40, "copy 2": 80},
        {"level": "memory", "holds": None, "read 1": 5, "read 2": 10, "copy 1": 5, "copy 2": 8},
    ],
}


def test_a_bound_is_that_of_the_slower_resource():
    assert machine.bound(MACHINE, 2e9, 1e6, 1000, 2) == (pytest.approx(0.01), "FMA")
    assert machine.bound(MACHINE, 0, 1e6, 1000, 2) == (pytest.approx(1e-5), "L2")
    assert machine.bound(MACHINE, 0, 1e6, 1e9, 1) == (pytest.approx(2e-4), "memory")


def test_steps_have_a_share_of_their_roofline():
    runner = candidates.runner("dlc compiled", "mlp", 1, TINY["mlp"])
    runner.start()
    found = measure.kernels(runner.call, MACHINE, 1, calls=3)
    assert found["steps"] and sum(s["share"] for s in found["steps"]) == pytest.approx(1)
    assert all(s["roofline"] > 0 and s["bound"] in ("FMA", "L2", "memory") for s in found["steps"])
    assert "roofline" in tables.kernels_table({"mlp": found})


def test_growth_has_a_point_for_each_size_and_number_of_threads(monkeypatch):
    monkeypatch.setitem(measure.GROWTH, "small_mlp", {"width": (8, 16)})
    points = measure.growth(["small_mlp"], ["dlc eager", "dlc compiled"], (1,), 1, 0.001)
    assert [(p["model"], p["parameter"], p["value"], p["threads"]) for p in points] == [
        ("small_mlp", "width", 8, 1),
        ("small_mlp", "width", 16, 1),
    ]
    assert all(set(p["times"]) == {"dlc eager", "dlc compiled"} and min(p["times"].values()) > 0 for p in points)


def test_code_for_sizes_that_vary_is_compared_with_code_for_one(monkeypatch):
    build = programs.model
    monkeypatch.setattr(programs, "model", lambda name, framework: build(name, framework, **TINY[name]))
    found = measure.dynamic_sizes(1, count=3, samples=1)
    assert len(found["ratios"]) == len(set(found["sizes"])) == 3 and found["geomean"] > 0
    assert found["compilations"] == 1
    assert "3 lengths" in bench.sizes_line(found)


def test_a_process_of_its_own_measures_its_first_call_and_memory(tmp_path):
    found = fresh.outside("dlc compiled", "small_mlp", 1, str(tmp_path), {"width": 8})
    assert set(found) == {"imported", "first", "warm", "peak"} and 0 < found["warm"] < found["first"]
    assert found["peak"] >= 0 and list(tmp_path.iterdir())


def row(**seconds):
    return {name.replace("_", " "): {"min": t, "median": t, "samples": [t], "calls": 1} for name, t in seconds.items()}


def start(first, warm, peak):
    return {"imported": 0.1, "first": first, "warm": warm, "peak": peak}


REPORT = {
    "about": {},
    "machine": MACHINE,
    "times": {"a": row(dlc_compiled=1e-3, ONNX_Runtime=2e-3, torch_eager=3e-3), "b": row(dlc_compiled=2e-3, torch_eager=1e-3)},
    "starts": {
        "a": {
            "dlc compiled": {"cold": start(0.2, 0.001, 100), "warm": start(0.05, 0.001, 120)},
            "torch.compile": {"cold": start(20, 0.001, 500), "warm": start(3, 0.001, 500)},
            "ONNX Runtime": {"cold": start(0.2, 0.001, 90), "warm": start(0.2, 0.001, 90)},
        }
    },
    "sizes": {"sizes": [1], "ratios": [0.9], "geomean": 0.9, "compilations": 2},
    "growth": [{"model": "a", "parameter": "width", "value": 8, "threads": 1, "times": {"dlc compiled": 2.0, "torch eager": 1.0}}],
}  # fmt: skip


def test_a_report_is_judged_part_by_part():
    report = json.loads(json.dumps(REPORT))  # as it comes back from the file
    results = dict((text, holds) for holds, text in tables.check(report).results)
    assert results["geometric mean at least 1.3 times as fast as the best peer (1.00)"] is False
    assert results["a: at least as fast as the best peer (2.00)"] is True
    assert results["b: at least as fast as the best peer (0.50)"] is False
    assert results["a: cold compile at most 1/40 of torch.compile's (1/100)"] is True
    assert results["a: a start with a warm cache at most 100 ms (49)"] is True
    assert results["a: peak memory at most ONNX Runtime's (1.11)"] is False
    assert results["encoder over 1 sizes: at least 0.95 of the speed of static code (0.900)"] is False
    assert results["a width=8 threads=1: 0.50 of the best peer"] is False
    assert tables.check({"about": {}}).results == []


def test_tables_and_picture_of_a_report(tmp_path):
    text = tables.times_table(REPORT["times"], candidates.NAMES)
    assert "2.00x" in text and "0.50x" in text and "geometric mean over 2 models: 1.00x" in text
    assert "0.199" in tables.starts_table(REPORT["starts"])
    assert "width=8" in tables.growth_table(REPORT["growth"], ("dlc compiled", "torch eager"))
    import picture

    report = copy.deepcopy(REPORT)
    step = {
        "kind": "kernel",
        "name": "k",
        "shapes": "8",
        "us": 1.0,
        "calls": 1,
        "share": 1.0,
        "gflops": 9.0,
        "gbytes": 3.0,
    }
    report["kernels"] = {"a": {"us": 1.0, "outside": 0.1, "steps": [{**step, "roofline": 0.5, "bound": "L2"}]}}
    picture.save(report, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_models_are_named():
    with pytest.raises(SystemExit, match="no model nothing"):
        measure.check_names(["mlp", "nothing"])
    assert bench.parse(["mlp", "--part", "times"]).models == ["mlp"]
