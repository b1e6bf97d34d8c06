"""./dev bench [models NAME...]: the models under dlc and its peers, from one run.

Runs in the virtual environment of the peers with dlc importable beside them. Weights and inputs are the same everywhere
and outputs are compared before anything is timed; candidates take turns. It measures the machine too, and refuses to
report when others use it. docs/performance.md says how to read what it prints.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "bench"), str(ROOT / "tools" / "demo")]

import candidates  # noqa: E402
import fresh  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import tables  # noqa: E402

PARTS = ("times", "kernels", "weights", "starts", "sizes", "growth")
WEIGHTS = ("dlc compiled", "torch eager", "torch.compile")
STARTS = ("dlc compiled", "torch eager", "torch.compile", "ONNX Runtime", "OpenVINO")
# A table of growth compiles each point anew: the peers that do so in seconds, unless --growth-peers says otherwise.
GROWTH_PEERS = ("torch eager", "ONNX Runtime", "OpenVINO")


def about(threads):
    versions = {}
    for package in ("dlc", "torch", "onnxruntime", "openvino"):
        try:
            versions[package] = __import__(package).__version__
        except ImportError:
            continue
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return {"versions": versions, "cpu": cpu, "threads": threads}


def must_be_quiet(threads, force, with_load, report):
    """Ends the program if the machine is shared with others, unless forced; keeps what was found in the report."""
    found = machine.sample(threads, with_load=with_load)
    reasons = machine.verdict(found)
    report.setdefault("quiet", []).append({**found, "reasons": reasons})
    refuse(report, reasons, force)


def refuse(report, reasons, force):
    if not reasons:
        return
    report["forced"] = True
    if not force:
        lines = "\n".join(f"  {r}" for r in reasons)
        raise SystemExit(f"the machine is not quiet, times would mean nothing:\n{lines}\nwait, or pass --force")


def starts(wanted, names, threads, repeats):
    """{model: {candidate: starts}}; compiled candidates cold and warm, the others as they are."""
    found = {}
    for model in wanted:
        for name in names:
            if candidates.package_of(name) not in ("dlc", "torch"):
                if model in models.TRAINING:
                    continue
                import onnx_peers

                onnx_peers.exported(model, {})
            measure.say(f"{model}: {name} in processes of its own")
            found.setdefault(model, {})[name] = fresh.starts(name, model, threads, repeats)
    return found


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench models", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME", help=f"some of {', '.join(models.NAMES)}")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these parts")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.05, help="length of one sample")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--with", dest="only", action="append", choices=candidates.NAMES, help="only these candidates")
    parser.add_argument("--without", action="append", default=[], choices=candidates.NAMES)
    parser.add_argument("--growth-peers", action="append", choices=candidates.PEERS, help="peers of the growth tables")
    parser.add_argument("--repeats", type=int, default=1, help="processes for each cold start")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for quiet moments, all models together"
    )
    parser.add_argument("--force", action="store_true", help="report although the machine is not quiet, and say so")
    parser.add_argument("--profile", action="store_true", help="only the steps of the models compiled by dlc")
    parser.add_argument("--json", type=Path, default=ROOT / "demo-out" / "bench.json")
    parser.add_argument("--picture", type=Path, default=ROOT / "demo-out" / "bench.png")
    return parser.parse_args(arguments)


def profile(wanted, threads):
    candidates.set_threads(threads, ["dlc compiled"])
    for model in wanted:
        runner = candidates.runner("dlc compiled", model, threads)
        runner.start()
        print(f"{model}, one call:\n{measure.profile(runner.call).table(calls=20)}\n")


def main():
    args = parse()
    wanted = args.models or list(models.NAMES)
    measure.check_names(wanted)
    if args.profile:
        return profile(wanted, args.threads)
    parts = args.part or (PARTS if not args.models else ("times", "kernels", "starts"))
    names = [n for n in args.only or candidates.NAMES if n not in args.without and candidates.installed(n)]
    report = run(args, wanted, parts, names)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(report, indent=1))
    if "times" in report:
        import picture

        picture.save(report, args.picture)
    return tables.check(report).report()


def run(args, wanted, parts, names):
    """Measures the parts, printing each when it is done. The report is what the JSON file holds."""
    threads = args.threads
    report = {"about": about(threads)}
    candidates.set_threads(threads, names)
    if not os.environ.get("DLC_BENCH_READY"):
        must_be_quiet(threads, args.force, True, report)
    running = {m: measure.prepare(m, names, threads) for m in wanted} if "times" in parts else {}
    measure.wait_for_quiet()
    must_be_quiet(threads, args.force, False, report)
    report["machine"] = machine.measure(threads)
    show(report, f"{report['about']}\n{machine.describe(report['machine'])}")
    if "times" in parts:
        report["times"], report["disturbed"] = measure.times(running, args.rounds, args.seconds, threads, args.patience)
        refuse(report, [f"{m}: {r}" for m, reasons in report["disturbed"].items() for r in reasons], args.force)
        show(report, tables.times_table(report["times"], names))
        running.clear()
    if "kernels" in parts:
        report["kernels"] = measure.all_kernels(wanted, report["machine"], threads)
        show(report, tables.kernels_table(report["kernels"]))
    if "weights" in parts:
        some = [n for n in WEIGHTS if n in names]
        report["weights"] = measure.stored_weights(some, threads, args.rounds, args.seconds)
        show(report, tables.weights_table(report["weights"], some))
    if "starts" in parts:
        report["starts"] = starts(wanted, [n for n in STARTS if n in names], threads, args.repeats)
        show(report, tables.starts_table(report["starts"]))
    if "sizes" in parts:
        report["sizes"] = measure.dynamic_sizes(threads)
        show(report, sizes_line(report["sizes"]))
    if "growth" in parts:
        peers = args.growth_peers or [n for n in GROWTH_PEERS if n in names]
        some = ["dlc compiled", *peers]
        report["growth"] = measure.growth(wanted, some, dict.fromkeys((1, threads)), 5, args.seconds)
        show(report, tables.growth_table(report["growth"], some))
    return report


def sizes_line(found):
    return (
        f"encoder over {len(found['ratios'])} lengths, static code's time / dynamic code's: geometric mean "
        f"{found['geomean']:.3f}, least {min(found['ratios']):.3f}; {found['compilations']} compilations"
    )


def show(report, text):
    if report.get("forced"):
        print("FORCED: the machine was not quiet")
    print(f"{text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
