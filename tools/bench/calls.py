"""./dev bench calls: what a warm call of a compiled function costs: dlc, torch.compile and JAX jit, from one run.

The functions compute next to nothing, so a time is that of guards, dispatch, one result and the way through Python:
x + 1 over 8 elements with 1 and with 10 tensor arguments, and a Module of 500 parameters that are all looked at, or all
added. Candidates take turns; a sample is the mean of a few hundred calls, shown are the smallest and the median sample.
A peer that isn't installed prints "-".
"""

import argparse
import functools
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "demo")]

from report import table  # noqa: E402

CANDIDATES = ("dlc eager", "dlc compiled", "torch eager", "torch.compile", "JAX jit")
CASES = ("1 input", "10 inputs", "500 parameters read", "500 parameters added")
PARAMETERS = 500


def one(x):
    return x + 1


def ten(a, b, c, d, e, f, g, h, i, j):
    return a + 1


def module_of(nn, torch, add):
    """A module tree of 250 layers with two parameters each; the forward reads the sizes of all, or adds all."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(8))
            self.b = nn.Parameter(torch.ones(8))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer() for _ in range(PARAMETERS // 2)])

        def forward(self, x):
            if add:
                for layer in self.layers:
                    x = x + layer.a + layer.b
                return x
            n = 0
            for layer in self.layers:
                n += layer.a.shape[0] - layer.b.shape[0]
            return x + 1 if n == 0 else x

    return Net()


def torch_like_calls(torch, nn, compiled):
    """{case: zero-argument call} of dlc or PyTorch, with gradients off: parameters would record otherwise."""
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    wrap = torch.compile if compiled else lambda f: f
    x = torch.ones(8)
    xs = [torch.ones(8) for _ in range(10)]
    calls = {"1 input": functools.partial(wrap(one), x), "10 inputs": functools.partial(wrap(ten), *xs)}
    for case, add in (("500 parameters read", False), ("500 parameters added", True)):
        calls[case] = functools.partial(wrap(module_of(nn, torch, add)), x)
    return calls


def dlc_calls(compiled):
    import dlc

    return torch_like_calls(dlc, dlc.nn, compiled)


def torch_calls(compiled):
    import torch

    return torch_like_calls(torch, torch.nn, compiled)


def jax_calls():
    import jax
    import jax.numpy as jnp

    x = jnp.ones(8)
    xs = [jnp.ones(8) for _ in range(10)]
    parameters = [(jnp.ones(8), jnp.ones(8)) for _ in range(PARAMETERS // 2)]

    def read(parameters, x):
        n = sum(a.shape[0] - b.shape[0] for a, b in parameters)
        return x + 1 if n == 0 else x

    def add(parameters, x):
        for a, b in parameters:
            x = x + a + b
        return x

    calls = {"1 input": functools.partial(jax.jit(one), x), "10 inputs": functools.partial(jax.jit(ten), *xs)}
    calls["500 parameters read"] = functools.partial(jax.jit(read), parameters, x)
    calls["500 parameters added"] = functools.partial(jax.jit(add), parameters, x)
    return calls


MAKERS = {
    "dlc eager": lambda: dlc_calls(False), "dlc compiled": lambda: dlc_calls(True), "torch eager": lambda: torch_calls(False),
    "torch.compile": lambda: torch_calls(True), "JAX jit": jax_calls,
}  # fmt: skip


def all_calls(names):
    """{case: {candidate: call}} of what is installed; results are compared before anything is timed."""
    found = {case: {} for case in CASES}
    for name in names:
        try:
            made = MAKERS[name]()
        except ImportError as missing:
            print(f"  {name}: {missing}", file=sys.stderr)
            continue
        for case, call in made.items():
            found[case][name] = call
    for case, calls in found.items():
        want = 2.0 if "added" not in case else 1.0 + PARAMETERS
        for name, call in calls.items():
            print(f"  {case}: {name}", file=sys.stderr, flush=True)
            for _ in range(5):
                got = [float(v) for v in call()]
            if got != [want] * 8:
                raise SystemExit(f"{case}: {name} gives {got}")
    return found


def sample(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def measure(calls, rounds, seconds):
    """{candidate: (smallest, median)} in seconds a call, samples taken in turns."""
    counts = {name: max(3, int(seconds / max(sample(call, 3), 1e-7))) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            times[name].append(sample(call, counts[name]))
    return {name: (min(t), statistics.median(t)) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=0.004, help="length of one sample")
    parser.add_argument("--without", action="append", default=[], choices=CANDIDATES, help="leave a candidate out")
    parser.add_argument("--json", type=Path, default=ROOT / "demo-out" / "calls.json")
    args = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    names = [n for n in CANDIDATES if n not in args.without]
    found = all_calls(names)
    results = {case: measure(calls, args.rounds, args.seconds) for case, calls in found.items()}
    rows = [
        [case, *(f"{1e6 * r[n][0]:.2f} / {1e6 * r[n][1]:.2f}" if n in r else "-" for n in CANDIDATES)]
        for case, r in results.items()
    ]
    print(table(["us a call (min / median)", *CANDIDATES], rows))
    if "dlc compiled" in names:
        import dlc

        stats = dlc.compile_stats()
        print(", ".join(f"{n} {stats[n]}" for n in ("captures", "replays", "hits", "fallbacks") if n in stats))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
