"""python -m tests.fuzz.programs: seeded random Python programs, eager against compiled, in child processes.

Prints each program whose runs differ or whose process dies, then totals: how many calls replayed without Python and why
the others took the trace tier.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MOST_FAILURES = 100
CALLS = ("calls", "raised", "compilations", "breaks", "fallbacks", "hits", "captures", "replays", "traced")


def child(first, count):
    """Runs programs first .. first+count; a JSON line before and after each."""
    import faulthandler
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from tests.fuzz.programs.execute import Difference, check, write
    from tests.fuzz.programs.scaffold import generate

    warnings.simplefilter("ignore")
    report_to, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            print(json.dumps({"seed": seed, "state": "started"}), file=report_to, flush=True)
            if os.environ.get("FUZZ_DIE_AT") == str(
                seed
            ):  # for the test of what happens when a program kills its process
                os.abort()
            report = {"seed": seed}
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                report.update(state="ok", **check(write(generate(seed), folder, seed)))
            except Difference as found:
                report.update(state="different", kind=found.kind, text=str(found))
            except Exception:
                report.update(state="different", kind="broken", text=traceback.format_exc(limit=-3)[-800:])
            print(json.dumps(report), file=report_to, flush=True)


def run_child(first, count, limit=None):
    """(reports, seed that was running when the child died or None, how it ended)."""
    command = [sys.executable, "-m", "tests.fuzz.programs", "--child", str(first), str(count)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit or 90 + 15 * count)
        text, errors, how, died = done.stdout, done.stderr, f"exit status {done.returncode}", done.returncode != 0
    except subprocess.TimeoutExpired as expired:
        text, errors, how, died = (expired.stdout or b"").decode(), "", "no end in time", True
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    reports = [r for r in lines if r["state"] != "started"]
    running = lines[-1]["seed"] if died and lines else first if died else None
    return reports, running, how + (": " + errors.strip().splitlines()[-1] if errors.strip() else "")


class Totals:
    """What all programs together came to."""

    def __init__(self):
        self.programs = 0
        self.different, self.deaths = [], []
        self.counts, self.reasons = collections.Counter(), collections.Counter()

    def add(self, report):
        self.programs += 1
        if report["state"] == "different":
            self.different.append(report)
            return
        self.counts.update({name: report[name] for name in CALLS if name in report})
        self.reasons.update(report["reasons"])

    def text(self):
        calls = max(1, self.counts["calls"])
        replays = f"{self.counts['replays'] / calls:.1%}" if "replays" in self.counts else "-"
        return (
            f"{self.programs} programs, {self.counts['calls']} calls ({self.counts['raised'] / calls:.0%} raised): {len(self.different)} different, "
            f"{len(self.deaths)} died; {replays} replayed without Python; "
            + ", ".join(f"{name} {self.counts[name]}" for name in CALLS[2:] if name in self.counts)
        )


def fuzz(programs, seed, chunk=25, say=print):
    """Runs all programs and returns their Totals."""
    totals, next_seed, end = Totals(), seed, seed + programs
    while next_seed < end and len(totals.different) + len(totals.deaths) < MOST_FAILURES:
        count = min(chunk, end - next_seed)
        reports, running, how = run_child(next_seed, count)
        for report in reports:
            totals.add(report)
            if report["state"] == "different":
                say(f"program {report['seed']} {report['text']}")
        if running is None:
            next_seed += count
            continue
        alone = run_child(running, 1)[1] is not None
        totals.programs += 1
        totals.deaths.append({"seed": running, "how": how, "alone": alone})
        say(
            f"program {running} died ({how}); {'alone too' if alone else f'only after {next_seed} and those behind it'}"
        )
        next_seed = running + 1
    return totals


def dies_or_differs(source):
    """The verdict of a program in a process of its own."""
    code = "import sys; from tests.fuzz.programs.minimize import verdict; k = verdict(sys.stdin.read()); sys.stderr.write('verdict=' + str(k))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], input=source, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return "death"
    said = done.stderr.rpartition("verdict=")[2]
    return "death" if done.returncode else None if said == "None" else said


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="SEED", help="print one program and compare it in this process")
    parser.add_argument("--minimize", type=int, metavar="SEED", help="shrink a program that fails")
    parser.add_argument("--minimize-file", type=Path, help="the same for a program in a file")
    parser.add_argument("--deaths", action="store_true", help="with --minimize: every try in a process of its own")
    parser.add_argument("--without", metavar="REGEX", help="leave out templates that match: known faults")
    parser.add_argument("--file", type=Path, help="compare the program in a file")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.setdefault("DLC_NUM_THREADS", "1")
    if args.without:
        os.environ["FUZZ_WITHOUT"] = args.without
    if args.child:
        return child(*args.child)
    if args.file:
        from tests.fuzz.programs.execute import check

        return print(check(args.file))
    if args.show is not None:
        from tests.fuzz.programs.scaffold import generate

        print(generate(args.show), flush=True)
        return child(args.show, 1)
    if args.minimize is not None or args.minimize_file:
        from tests.fuzz.programs.minimize import minimize
        from tests.fuzz.programs.scaffold import generate

        source = args.minimize_file.read_text() if args.minimize_file else generate(args.minimize)
        source, kind = minimize(source, dies_or_differs if args.deaths else None)
        return print(f"{source}\n# fails by: {kind}")
    start = time.perf_counter()
    totals = fuzz(args.programs, args.seed)
    for reason, count in totals.reasons.most_common(25):
        print(f"{count:6} {reason}")
    print(f"{totals.text()}; {time.perf_counter() - start:.0f} s")
    return 1 if totals.different or totals.deaths else 0


if __name__ == "__main__":
    sys.exit(main())
