"""./dev bench overheads: what calls of small programs cost through Python, eager and compiled, and a step of a loop.

Printed below the costs of the runtime alone (bench-overheads). The computations are a few microseconds at most; samples
are taken in turns, shown are the smallest and the median.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import dlc
from dlc import nn

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "demo")]

from report import table  # noqa: E402


def add(x):
    return x + 1


def rnn(x, w):
    h = x[0]
    for t in range(x.shape[0]):
        h = dlc.tanh(x[t] + h @ w)
    return h


def programs():
    """{name: (function, arguments, steps that one call takes)}"""
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    loops = {
        f"recurrent loop of {n} steps, a step": (rnn, (dlc.randn(n, 1, 16), dlc.randn(16, 16) * 0.1), n)
        for n in (100, 1000)
    }
    return {
        "x + 1, 8 elements": (add, (dlc.ones(8),), 1),
        "3 linear layers of width 64, batch 1": (mlp, (dlc.randn(1, 64),), 1),
        **loops,
    }


def sample(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def main():
    parser = argparse.ArgumentParser(prog="./dev bench overheads", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    dlc.set_grad_enabled(False)
    rows = []
    for name, (function, args, steps) in programs().items():
        compiled = dlc.compile(function)
        for _ in range(30):
            compiled(*args)
        times = {"eager": [], "compiled": []}
        for _ in range(rounds):
            for who, f in (("eager", function), ("compiled", compiled)):
                times[who].append(sample(lambda f=f, args=args: f(*args), max(1, 100 // steps)) / steps)
        rows.append([name, *(f"{1e6 * min(t):.2f} / {1e6 * statistics.median(t):.2f}" for t in times.values())])
    print(table(["us (min / median)", "eager", "compiled"], rows))


if __name__ == "__main__":
    main()
