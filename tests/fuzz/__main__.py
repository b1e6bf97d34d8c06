"""python -m tests.fuzz: seeded random programs, eager against compiled; a child process for each 50, bisected if it dies."""

import argparse
import collections
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def child(first, count):
    """Runs programs first .. first+count and prints one JSON line before and after each."""
    from tests.fuzz.compare import Difference, check_program
    from tests.fuzz.generate import generate

    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        print(json.dumps({"seed": seed, "state": "started"}), flush=True)
        if os.environ.get("FUZZ_DIE_AT") == str(seed):  # for the test of what happens when a program kills its process
            os.abort()
        report, program = {"seed": seed}, None
        try:
            program = generate(seed)
            report.update(state="ok", ops=program.ops, overlapping=program.overlapping, backward=program.backward)
            report.update(check_program(program))
        except Difference as difference:
            report.update(state="different", text=str(difference)[:2000], source=program.source, sizes=program.sizes)
            report.update(inputs=program.inputs)
        except Exception:
            report.update(
                state="different", text=traceback.format_exc()[-2000:], source=program.source if program else ""
            )
        print(json.dumps(report), flush=True)


def run_child(first, count, limit=None):
    """(reports, seed that was running when the child died or None, how it ended)."""
    command = [sys.executable, "-m", "tests.fuzz", "--child", str(first), str(count)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit or 60 + 20 * count)
        text, errors, how = done.stdout, done.stderr, f"exit status {done.returncode}"
        died = done.returncode != 0
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode()
        errors, how, died = "", "no end in time", True
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    reports = [r for r in lines if r["state"] != "started"]
    running = lines[-1]["seed"] if died and lines else first if died else None
    return reports, running, how + (": " + errors.strip().splitlines()[-1] if errors.strip() else "")


def bisect_death(first, culprit):
    """The shortest run of programs ending at `culprit` that dies: usually that program alone."""
    if run_child(culprit, 1)[1] is not None:
        return culprit
    low, high = first, culprit
    while low < high - 1:
        middle = (low + high) // 2
        if run_child(middle, culprit - middle + 1)[1] is not None:
            low = middle
        else:
            high = middle
    return low


def fuzz(programs, seed, chunk=50, say=print, bisect=True):
    """Runs all programs and returns totals: programs, differences, deaths, no_fallback, overlapping, ..."""
    total = {
        "reasons": collections.Counter(),
        "programs": 0,
        "different": [],
        "deaths": [],
        "no_fallback": 0,
        "overlapping": 0,
        "backward": 0,
        "compilations": 0,
    }
    next_seed, end = seed, seed + programs
    while next_seed < end:
        count = min(chunk, end - next_seed)
        reports, running, how = run_child(next_seed, count)
        for r in reports:
            total["programs"] += 1
            if r["state"] == "different":
                total["different"].append(r)
                say(f"program {r['seed']}: {r['text']}\n{r['source']}")
                continue
            total["reasons"].update(r["reasons"])
            total["no_fallback"] += r["fallbacks"] == 0
            for name in ("overlapping", "backward", "compilations"):
                total[name] += r[name]
        if running is None:
            next_seed += count
            continue
        start = bisect_death(next_seed, running) if bisect else running
        total["programs"] += 1
        total["deaths"].append({"seed": running, "first": start, "how": how})
        say(f"program {running} died ({how}); needs programs {start} to {running}")
        next_seed = running + 1
    return total


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="SEED", help="print one program and compare it in this process")
    parser.add_argument(
        "--minimize", type=int, metavar="SEED", help="shrink a program that fails, or falls back, to few lines"
    )
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(*args.child)
    if args.show is not None:
        from tests.fuzz.generate import generate

        program = generate(args.show)
        print(
            program.source,
            "inputs:",
            program.inputs,
            "\nsizes:",
            program.sizes,
            "bases:",
            program.base_dtypes,
            flush=True,
        )
        return child(args.show, 1)
    if args.minimize is not None:
        from tests.fuzz.generate import generate
        from tests.fuzz.minimize import minimize

        program, what = minimize(generate(args.minimize))
        return print(
            f"{what}\n{program.source}inputs: {program.inputs}, sizes: {program.sizes}, bases: {program.base_dtypes}"
        )
    os.environ.setdefault("DLC_NUM_THREADS", "2")
    start = time.perf_counter()
    total = fuzz(args.programs, args.seed)
    for reason, count in total["reasons"].most_common(12):
        print(f"fallback in {count} programs: {reason}")
    share = total["no_fallback"] / max(1, total["programs"])
    print(
        f"{total['programs']} programs in {time.perf_counter() - start:.0f} s: {len(total['different'])} different, "
        f"{len(total['deaths'])} died, {share:.1%} without a fallback, {total['overlapping']} on overlapping views, "
        f"{total['backward']} with backward, {total['compilations']} compilations"
    )
    return 1 if total["different"] or total["deaths"] or share < 0.95 else 0


if __name__ == "__main__":
    sys.exit(main())
