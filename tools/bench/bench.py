"""./dev bench [models NAME...]: the models under dlc and its peers, from one run.

Runs in the virtual environment of the peers with dlc importable beside them. Weights are the same everywhere and
results are compared before anything is timed; candidates take turns.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "bench"), str(ROOT / "tools" / "demo")]

import candidates  # noqa: E402
import models  # noqa: E402
from report import table  # noqa: E402
from timing import interleave  # noqa: E402

TOLERANCE = 1e-3


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def runners(model, names, threads):
    """The candidates that run a model, compared with the first of them."""
    made, first = {}, {}
    candidates.set_threads(threads, names)
    for name in names:
        start = time.perf_counter()
        made[name] = candidates.Runner(name, model)
        first[name] = time.perf_counter() - start
        say(f"{model}: {name} ready in {first[name]:.1f} s")
        gap = candidates.gap(made[name].results, made[names[0]].results)
        if not gap <= TOLERANCE:
            raise SystemExit(f"{model}: {name} differs from {names[0]} by {gap:.2e} (at most {TOLERANCE:g} expected)")
    return made, first


def measure(wanted, names, rounds, seconds, threads):
    made = {model: runners(model, names, threads)[0] for model in wanted}
    ready = os.environ.get("DLC_BENCH_READY")
    if ready:  # whoever started this run clears the machine now
        Path(ready).touch()
        while Path(ready).exists():
            time.sleep(0.05)
    times = {}
    for model, running in made.items():
        times[model] = interleave({name: r.call for name, r in running.items()}, rounds, seconds)
        say(f"{model}: timed")
    return times


def profile(model, threads, calls=20):
    """The steps of a model compiled by dlc, warm."""
    import dlc

    candidates.set_threads(threads, candidates.DLC)
    run = candidates.Runner("dlc compiled", model).call
    for _ in range(30):  # the plan's own trials of threads too
        run()
    with dlc.profile() as taken:
        for _ in range(calls):
            run()
    print(f"{model}, one call of {calls}:\n{taken.table(calls=calls)}\n")


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 0.1 else f"{1e3 * seconds:.0f}"


def times_table(times, names):
    rows = []
    for model, row in times.items():
        best = (
            min((row[n]["min"], n) for n in names if n in candidates.PEERS)
            if set(names) & set(candidates.PEERS)
            else None
        )
        cells = [milliseconds(row[n]["min"]) for n in names]
        ahead = f"{best[0] / row['dlc compiled']['min']:.2f}x {best[1]}" if best and "dlc compiled" in row else "-"
        rows.append([model, *cells, ahead])
    return table(["ms a call (smallest)", *names, "dlc against the best peer"], rows)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME", help=f"some of {', '.join(models.NAMES)}")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.05, help="length of one sample")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--without", action="append", default=[], choices=candidates.NAMES)
    parser.add_argument("--json", type=Path, default=ROOT / "demo-out" / "bench.json")
    parser.add_argument("--profile", action="store_true", help="only the steps of the models compiled by dlc")
    args = parser.parse_args()
    wanted = args.models or models.NAMES
    if args.profile:
        for model in wanted:
            profile(model, args.threads)
        return
    names = [n for n in candidates.NAMES if n not in args.without]
    times = measure(wanted, names, args.rounds, args.seconds, args.threads)
    print(times_table(times, names))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(times, indent=1))


if __name__ == "__main__":
    sys.exit(main())
