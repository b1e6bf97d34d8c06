"""The parts of `./dev bench` that run in its own process: times in turns, steps against their roofline, sizes that vary."""

import os
import statistics
import sys
import time
from pathlib import Path

import candidates
import machine
import models
import programs
from timing import REST, interleave

TOLERANCE = 1e-3  # of outputs, beside the largest value


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def prepare(model, names, threads, sizes=None):
    """The started runners of a model by candidate, their outputs compared with the first one's."""
    running, reference = {}, None
    for name in names:
        start = time.perf_counter()
        runner = candidates.runner(name, model, threads, sizes)
        if runner is None:
            continue
        outputs = runner.start()
        reference = outputs if reference is None else reference
        gap = candidates.gap(outputs, reference)
        if not gap <= TOLERANCE:
            raise SystemExit(f"{model}: {name} differs from {names[0]} by {gap:.2e} (at most {TOLERANCE:g} expected)")
        running[name] = runner
        say(f"{model}: {name} ready in {time.perf_counter() - start:.1f} s")
    return running


def times(running, rounds, seconds, threads, patience=0.0):
    """({model: {candidate: times of `interleave`}}, {model: reasons}) of what `prepare` made of each model.

    A row counts when the machine was quiet before and after it. Until `patience` seconds have passed it waits for that
    and times a disturbed row again; then the row stands with the reasons.
    """
    found, disturbed = {}, {}
    end = time.perf_counter() + patience
    for model, runners in running.items():
        calls = {name: r.call for name, r in runners.items()}
        while True:
            reasons = disturbance(threads)
            if reasons and time.perf_counter() < end:
                continue
            found[model] = interleave(calls, rounds, seconds)
            reasons = reasons or disturbance(threads)
            if not reasons or time.perf_counter() >= end:
                break
        if reasons:
            disturbed[model] = reasons
        say(f"{model}: timed" + (f", but {reasons[0]}" if reasons else ""))
    return found, disturbed


def disturbance(threads):
    """Why the next 0.3 seconds are not those of a quiet machine."""
    return machine.verdict(machine.sample(threads, 0.3, with_load=False))


def wait_for_quiet():
    """Whoever started this run and set DLC_BENCH_READY clears the machine now, and says so by removing that file."""
    ready = os.environ.get("DLC_BENCH_READY")
    if ready:
        Path(ready).touch()
        while Path(ready).exists():
            time.sleep(0.05)


def warm_up(call, seconds=0.2, least=30):
    """Calls until a plan has made its trials of threads."""
    end = time.perf_counter() + seconds
    for i in range(10000):
        if i >= least and time.perf_counter() > end:
            return
        call()


def profile(call, calls=20):
    """The dlc.profile of `calls` warm calls."""
    import dlc

    warm_up(call)
    with dlc.profile() as taken:
        for _ in range(calls):
            call()
    return taken


def kernels(call, measured, threads, calls=20):
    """The steps of one call: dicts with "us", "calls", "share" of the time, GFLOP/s, GB/s, and "roofline", the share of
    what the machine could do, with what bounds it there ("FMA", or the memory level that the program's operands fit)."""
    taken = profile(call, calls)
    total = sum(s.seconds for s in taken.steps) or 1e-9
    footprint = sum(s.bytes * s.calls for s in taken.steps) / calls
    rows = []
    for s in taken.steps:
        least, what = machine.bound(measured, s.flops, s.bytes, footprint, threads)
        rows.append(
            {
                "kind": s.kind, "name": s.name, "shapes": s.shapes, "us": s.seconds / calls * 1e6, "calls": s.calls / calls,
                "share": s.seconds / total, "gflops": s.gflops, "gbytes": s.gigabytes,
                "roofline": least * s.calls / s.seconds if s.seconds else 0.0, "bound": what,
            }
        )  # fmt: skip
    return {"us": total / calls * 1e6, "outside": (taken.seconds - total) / calls * 1e6, "steps": rows}


def all_kernels(wanted, measured, threads):
    """{model: kernels(...)} of the models compiled by dlc."""
    candidates.set_threads(threads, ["dlc compiled"])
    found = {}
    for model in wanted:
        runner = candidates.runner("dlc compiled", model, threads)
        runner.start()
        found[model] = kernels(runner.call, measured, threads)
    return found


def dynamic_sizes(threads, count=100, samples=5):
    """The encoder over `count` lengths: code for sizes that vary beside code for each size alone, taking turns.

    {"sizes": [...], "ratios": [static / dynamic], "geomean": ..., "compilations": of the dynamic function}
    """
    import dlc
    import numpy as np

    candidates.set_threads(threads, ["dlc compiled"])
    program = programs.model("encoder", "dlc")
    whole = program.inputs[0]
    lengths = np.random.default_rng(0).permutation(np.arange(16, 16 + 2 * count, 2)).tolist()
    tokens = {n: dlc.from_numpy(np.resize(whole, (1, n))) for n in lengths}
    dlc.reset_compile_stats()
    dynamic = dlc.compile(program.module, dynamic=True)
    ratios = []
    with dlc.no_grad():
        for x in tokens.values():
            dynamic(x)
        compilations = dlc.compile_stats()["compilations"]
        for x in tokens.values():
            fixed = dlc.compile(program.module, dynamic=False)
            calls = {"fixed": lambda f=fixed, x=x: f(x), "dynamic": lambda x=x: dynamic(x)}
            for call in calls.values():
                warm_up(call, 0.0, 24)
            best = {name: 1e9 for name in calls}
            for _ in range(samples):
                for name, call in calls.items():
                    call()
                    start = time.perf_counter()
                    call()
                    best[name] = min(best[name], time.perf_counter() - start)
            ratios.append(best["fixed"] / best["dynamic"])
    return {
        "sizes": lengths,
        "ratios": ratios,
        "geomean": statistics.geometric_mean(ratios),
        "compilations": compilations,
    }


# How the tables of growth scale each model: parameter and factors.
GROWTH = {
    "small_mlp": {"width": (16, 32, 64, 128, 256, 512), "batch": (1, 2, 4, 8)},
    "mlp": {"width": (128, 256, 512, 1024, 2048, 4096), "batch": (16, 32, 64, 128, 256, 512)},
    "pointwise": {"width": (256, 512, 1024, 2048, 4096, 8192), "rows": (128, 256, 512, 1024, 2048, 4096)},
    "softmax_ce": {"classes": (2500, 5000, 10000, 20000, 40000, 80000)},
    "encoder": {"length": (32, 64, 128, 256, 512, 1024), "batch": (1, 2, 4, 8), "width": (96, 192, 384, 768, 1536)},
    "decode": {"length": (25, 50, 100, 200, 400, 800), "width": (128, 256, 512, 1024)},
    "resnet18": {"size": (56, 112, 224, 448), "batch": (1, 2, 4, 8), "width": (16, 32, 64, 128)},
    "mobilenet": {"size": (56, 112, 224, 448), "batch": (1, 2, 4, 8)},
    "rnn": {"batch": (2, 4, 8, 16, 32, 64), "hidden": (32, 64, 128, 256, 512, 1024)},
    "train_mlp": {"width": (128, 256, 512, 1024, 2048, 4096), "batch": (16, 32, 64, 128, 256, 512)},
    "train_gpt": {"width": (32, 64, 128, 256, 512), "batch": (2, 4, 8, 16, 32, 64), "length": (16, 32, 64, 128, 256, 512)},
    "train_cnn": {"batch": (8, 16, 32, 64, 128, 256), "width": (8, 16, 32, 64)},
}  # fmt: skip


def growth(wanted, names, thread_counts, rounds, seconds):
    """[{"model", "parameter", "value", "threads", "times": {candidate: seconds}}], the smallest times.

    A point at a time, so that no other model is in memory.
    """
    points = []
    for model in wanted:
        for parameter, values in GROWTH[model].items():
            for value in values:
                for threads in thread_counts:
                    candidates.set_threads(threads, names)
                    running = prepare(model, names, threads, {parameter: value})
                    row = interleave({n: r.call for n, r in running.items()}, rounds, seconds)
                    points.append(
                        {
                            "model": model,
                            "parameter": parameter,
                            "value": value,
                            "threads": threads,
                            "times": {n: v["min"] for n, v in row.items()},
                        }
                    )
                    time.sleep(REST)
                if any(n in candidates.PACKAGES for n in names):
                    import onnx_peers

                    onnx_peers.forget(model, {parameter: value})
    return points


def stored_weights(names, threads, rounds, seconds):
    """Decoding with weights kept as f32, bf16 and int8: {kind: {"times": {candidate: times}, "errors": {candidate:
    largest difference from its own f32 outputs, beside their largest value}}}."""
    found, exact = {}, {}
    candidates.set_threads(threads, names)
    for kind in ("f32", "bf16", "int8"):
        running, errors = {}, {}
        for name in names:
            running[name] = candidates.runner(name, "decode", threads, {"weights": kind})
            outputs = running[name].start()
            exact.setdefault(name, outputs)
            errors[name] = float(candidates.gap(outputs, exact[name]))
        times = interleave({n: r.call for n, r in running.items()}, rounds, seconds)
        found[kind] = {"times": times, "errors": errors}
    return found


def check_names(wanted):
    unknown = [n for n in wanted if n not in models.NAMES]
    if unknown:
        raise SystemExit(f"no model {', '.join(unknown)}\nthere are {', '.join(models.NAMES)}")
