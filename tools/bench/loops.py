"""Python loops over time steps: what compiling costs for 10, 100 and 1,000 steps, and a warm call beside eager.

`python tools/bench/loops.py [--rounds N]`. Each number of steps is compiled by a process of its own with an empty
kernel cache. Warm times are medians over rounds in which eager and compiled take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = (10, 100, 1000)
SIZES = ((1, 32, 64), (16, 32, 64))
BATCH, FEATURES, HIDDEN = SIZES[1]


def programs():
    import dlc

    def cell(x, h, c, wx, wh, b):
        i, f, o, n = (x @ wx + h @ wh + b).chunk(4, 1)
        c = dlc.sigmoid(f) * c + dlc.sigmoid(i) * dlc.tanh(n)
        return dlc.sigmoid(o) * dlc.tanh(c), c

    def lstm(x, wx, wh, b):
        h = c = dlc.zeros(x.shape[1], wh.shape[0])
        outs = []
        for t in range(x.shape[0]):
            h, c = cell(x[t], h, c, wx, wh, b)
            outs.append(h)
        return dlc.stack(outs)

    def train(x, wx, wh, b):
        for p in (wx, wh, b):
            p.grad = None
        y = lstm(x, wx, wh, b)
        loss = (y * y).mean()
        loss.backward()
        return loss.detach()

    return {"LSTM forward": lstm, "LSTM training step": train}


def inputs(steps, grad):
    import dlc

    dlc.manual_seed(0)
    weights = [dlc.randn(FEATURES, 4 * HIDDEN) * 0.1, dlc.randn(HIDDEN, 4 * HIDDEN) * 0.1, dlc.zeros(4 * HIDDEN)]
    for w in weights:
        w.requires_grad_(grad)
    return dlc.randn(steps, BATCH, FEATURES), *weights


def seconds_of(f, args):
    start = time.perf_counter()
    f(*args).sum().item()
    return time.perf_counter() - start


def measure(name, steps, rounds):
    """In a process of its own: compile time, first call, warm times."""
    import dlc

    f = programs()[name]
    args = inputs(steps, "training" in name)
    compiled = dlc.compile(f)
    first = seconds_of(compiled, args)
    stats = dlc.compile_stats()
    difference = (compiled(*args) - f(*args)).abs().max().item()
    assert difference < 1e-4, f"{name}, {steps} steps: eager and compiled differ by {difference}"
    times = {"eager": [], "compiled": []}
    for _ in range(rounds):
        for who, call in (("eager", f), ("compiled", compiled)):
            times[who].append(seconds_of(call, args))
    return {
        "first": first,
        "compile": stats["compile_seconds"],
        "llvm": stats["llvm_compilations"],
        "kernels": stats["kernels"],
        **{who: statistics.median(t) for who, t in times.items()},
    }


def in_own_process(name, steps, size, rounds):
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--rounds", str(rounds), "--one", name, str(steps), str(size)]
        out = subprocess.run(command, env={**os.environ, "DLC_CACHE_DIR": cache}, capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", nargs=3, metavar=("PROGRAM", "STEPS", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        global BATCH, FEATURES, HIDDEN
        BATCH, FEATURES, HIDDEN = SIZES[int(options.one[2])]
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.rounds)))
        return
    columns = ("steps", "compile s", "kernels", "first s", "eager ms", "warm ms")
    print(f"{'program, batch x features x hidden':38}" + "".join(f"{c:>11}" for c in columns) + f"{'speed':>8}")
    for name in ("LSTM forward", "LSTM training step"):
        for index, sizes in enumerate(SIZES):
            for steps in STEPS:
                r = in_own_process(name, steps, index, options.rounds)
                print(
                    f"{name + ', ' + 'x'.join(map(str, sizes)):38}{steps:11}{r['compile']:11.3f}{r['kernels']:11}"
                    f"{r['first']:11.3f}{r['eager'] * 1e3:11.2f}{r['compiled'] * 1e3:11.2f}"
                    f"{r['eager'] / r['compiled']:7.1f}x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
