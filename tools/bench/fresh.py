"""First calls and memory, each in a process of its own: `python fresh.py CANDIDATE MODEL THREADS [SIZES as JSON]` is that process."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def resident(field="VmRSS"):
    """Bytes of this process in memory; VmHWM: the most since forget_peak."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def inside(candidate, model, threads, sizes):
    """What this process measures, as a dict of seconds and bytes.

    imported: importing what the candidate needs. first: from the model with its weights to the first result. warm: the
    best later call. peak: memory of later calls beyond what the imports took, weights included.
    """
    sys.path.insert(0, str(HERE))
    import candidates

    start = time.perf_counter()
    importlib.import_module(candidates.package_of(candidate))
    imported = time.perf_counter() - start
    if candidates.package_of(candidate) == "torch":
        # Its optimizers import it at their first step: that is no memory of a step.
        importlib.import_module("torch._dynamo")
    candidates.set_threads(threads, [candidate])
    base = resident()
    runner = candidates.runner(candidate, model, threads, sizes)
    start = time.perf_counter()
    runner.start(1)
    first, warm = time.perf_counter() - start, 1e9
    end = time.perf_counter() + 2
    for _ in range(20):
        start = time.perf_counter()
        runner.call()
        warm = min(warm, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    forget_peak()
    for _ in range(3):
        runner.call()
    return {"imported": imported, "first": first, "warm": warm, "peak": resident("VmHWM") - base}


def outside(candidate, model, threads, cache, sizes=None):
    """The dict of a new process with its caches in the folder `cache`."""
    environment = dict(os.environ, DLC_CACHE_DIR=cache, XDG_CACHE_HOME=cache, TORCHINDUCTOR_CACHE_DIR=cache)
    command = [sys.executable, __file__, candidate, model, str(threads), json.dumps(sizes or {})]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{model}: {candidate} in a process of its own:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def starts(candidate, model, threads, repeats=1):
    """{"cold": dict, "warm": dict}: the first process of an empty cache, and one that finds what that one left.

    Of several repeats the smallest numbers.
    """
    found = {"cold": [], "warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for state in found:
                found[state].append(outside(candidate, model, threads, cache))
    return {state: {k: min(r[k] for r in runs) for k in runs[0]} for state, runs in found.items()}


if __name__ == "__main__":
    name, which, count, given = sys.argv[1:]
    print(json.dumps(inside(name, which, int(count), json.loads(given))))
