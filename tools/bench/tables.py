"""What `./dev bench` prints: tables, and the lines of what must hold."""

import math

from candidates import PEERS
from report import Checks, table

INFERENCE_COLD = ("torch.compile", "OpenVINO")
ROOFLINE_STEPS = 12  # a model


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def best(row, names):
    """(seconds, candidate) of the fastest of `names` in a row of times; None if none is there."""
    return min(((row[n]["min"], n) for n in names if n in row), default=None)


def ours(row):
    return best(row, ("dlc compiled", "dlc max-autotune"))


def ahead(row):
    """How many times as fast as the best peer dlc is; None without either."""
    mine, theirs = ours(row), best(row, PEERS)
    return theirs[0] / mine[0] if mine and theirs else None


def milliseconds(seconds):
    ms = 1e3 * seconds
    return f"{ms:.4f}" if ms < 0.1 else f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


def times_table(results, names):
    """Smallest times; the median in brackets where it is more than a tenth away."""
    rows = []
    for model, row in results.items():
        cells = []
        for name in names:
            if name not in row:
                cells.append("-")
                continue
            least, middle = row[name]["min"], row[name]["median"]
            far = f" ({milliseconds(middle)})" if middle > 1.1 * least else ""
            cells.append(milliseconds(least) + far)
        theirs, factor = best(row, PEERS), ahead(row)
        rows.append([model, *cells, theirs[1] if theirs else "-", f"{factor:.2f}x" if factor else "-"])
    text = table(["ms a call, smallest (median)", *names, "best peer", "dlc ahead"], rows)
    factors = [f for f in map(ahead, results.values()) if f]
    return f"{text}\ngeometric mean over {len(factors)} models: {geomean(factors):.2f}x the best peer"


def starts_table(starts):
    rows = []
    for model, row in starts.items():
        for name, found in row.items():
            cold, warm = found["cold"], found["warm"]
            rows.append(
                [
                    f"{model}: {name}",
                    f"{cold['first'] - cold['warm']:.3f}",
                    f"{warm['first'] - warm['warm']:.3f}",
                    f"{warm['imported']:.2f}",
                    f"{min(cold['peak'], warm['peak']) / 2**20:.1f}",
                ]
            )
    return table(["in processes of their own", "cold s", "warm cache s", "import s", "peak MiB"], rows)


def kernels_table(kernels):
    parts = []
    for model, found in kernels.items():
        rows = [
            [
                f"  {s['kind']} {s['name'][:40]}", f"{s['us']:.1f}", f"{s['calls']:g}", f"{100 * s['share']:.1f}%",
                f"{s['gflops']:.0f}" if s["gflops"] else "-", f"{s['gbytes']:.1f}", f"{100 * s['roofline']:.0f}%", s["bound"],
                s["shapes"][:60],
            ]
            for s in found["steps"][:ROOFLINE_STEPS]
        ]  # fmt: skip
        head = [
            f"{model}: {found['us']:.0f} us",
            "us",
            "calls",
            "share",
            "GFLOP/s",
            "GB/s",
            "roofline",
            "bound",
            "shapes",
        ]
        rest = sum(s["us"] for s in found["steps"][ROOFLINE_STEPS:])
        parts.append(
            table(head, rows) + f"\n  {rest:.1f} us in other steps, {found['outside']:.1f} us outside of steps"
        )
    return "\n\n".join(parts)


def weights_table(found, names):
    rows = []
    for kind, row in found.items():
        cells = [f"{milliseconds(row['times'][n]['min'])} (error {row['errors'][n]:.1e})" for n in names]
        rows.append([f"decode, {kind} weights", *cells])
    return table(["ms a call, difference from f32", *names], rows)


def growth_table(points, names):
    rows = []
    for p in points:
        row = {n: {"min": t} for n, t in p["times"].items()}
        factor = ahead(row)
        cells = [milliseconds(p["times"][n]) if n in p["times"] else "-" for n in names]
        what = f"{p['model']} {p['parameter']}={p['value']} threads={p['threads']}"
        rows.append([what, *cells, f"{factor:.2f}x" if factor else "-"])
    return table(["how time grows, ms a call", *names, "dlc ahead"], rows)


def check(report, checks=None):
    """What the bench promises, as a Checks. report: the JSON of a run; parts that it lacks are not judged."""
    checks = checks or Checks()
    results = report.get("times", {})
    factors = {m: f for m, f in ((m, ahead(row)) for m, row in results.items()) if f}
    if factors:
        mean = geomean(factors.values())
        checks.that(mean >= 1.3, f"geometric mean at least 1.3 times as fast as the best peer ({mean:.2f})")
        for model, factor in factors.items():
            checks.that(factor >= 1.0, f"{model}: at least as fast as the best peer ({factor:.2f})")
    compiled = [
        row["torch.compile"]["min"] / ours(row)[0] for row in results.values() if "torch.compile" in row and ours(row)
    ]
    if compiled:
        mean = geomean(compiled)
        checks.that(mean >= 2, f"geometric mean at least 2 times as fast as torch.compile ({mean:.2f})")
    for model, row in report.get("starts", {}).items():
        _check_starts(checks, model, row)
    sizes = report.get("sizes")
    if sizes:
        checks.that(
            sizes["geomean"] >= 0.95,
            f"encoder over {len(sizes['ratios'])} sizes: at least 0.95 of the speed of static code ({sizes['geomean']:.3f})",
        )
    for p in report.get("growth", []):
        factor = ahead({n: {"min": t} for n, t in p["times"].items()})
        if factor and factor < 0.95:
            checks.that(
                False,
                f"{p['model']} {p['parameter']}={p['value']} threads={p['threads']}: {factor:.2f} of the best peer",
            )
    return checks


def _check_starts(checks, model, row):
    def compiling(name, state="cold"):
        return row[name][state]["first"] - row[name][state]["warm"]

    if "dlc compiled" not in row:
        return
    cold, warm = compiling("dlc compiled"), compiling("dlc compiled", "warm")
    if "torch.compile" in row:
        share = cold / compiling("torch.compile")
        checks.that(share <= 1 / 40, f"{model}: cold compile at most 1/40 of torch.compile's (1/{1 / share:.0f})")
    if "OpenVINO" in row:
        share = cold / compiling("OpenVINO")
        checks.that(share <= 1, f"{model}: cold compile at most OpenVINO's ({share:.2f})")
    checks.that(warm <= 0.1, f"{model}: a start with a warm cache at most 100 ms ({1e3 * warm:.0f})")

    def peak(name):
        return min(row[name][state]["peak"] for state in ("cold", "warm"))

    if "ONNX Runtime" in row:
        share = peak("dlc compiled") / peak("ONNX Runtime")
        checks.that(share <= 1, f"{model}: peak memory at most ONNX Runtime's ({share:.2f})")
    elif "torch eager" in row:
        share = peak("dlc compiled") / peak("torch eager")
        checks.that(share <= 0.7, f"{model}: peak memory at most 0.7 of PyTorch eager's ({share:.2f})")
