"""The picture of a run: how far ahead dlc is on each model, and its steps under the machine's roofline."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (the backend first)
from candidates import PEERS  # noqa: E402
from tables import best, geomean  # noqa: E402

COLOURS = {
    "dlc eager": "#9db8d9", "dlc compiled": "#1f5fa8", "dlc max-autotune": "#0b2f5b", "torch eager": "#f2b48c",
    "torch.compile": "#dd7a34", "torch max-autotune": "#a34a10", "ONNX Runtime": "#6aa66a", "OpenVINO": "#8a6fb0",
}  # fmt: skip


def save(report, path):
    """Writes the picture of a report (the JSON of a run) to `path`, a .png."""
    kernels = bool(report.get("kernels") and report.get("machine"))
    figure, axes = plt.subplots(1 + kernels, 1, figsize=(14, 6 * (1 + kernels)), squeeze=False)
    _bars(axes[0, 0], report["times"])
    if kernels:
        _roofline(axes[1, 0], report["kernels"], report["machine"])
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _bars(axis, times):
    """Speed beside the best peer of each model; 1 is that peer."""
    names = [n for n in COLOURS if any(n in row for row in times.values())]
    width = 0.8 / max(1, len(names))
    labels = [*times, "geomean"]
    for k, name in enumerate(names):
        heights = []
        for row in times.values():
            theirs = best(row, PEERS) or best(row, row)
            heights.append(theirs[0] / row[name]["min"] if name in row else 0.0)
        there = [h for h in heights if h]
        heights.append(geomean(there) if len(there) == len(times) else 0.0)
        axis.bar(
            [i + (k - len(names) / 2 + 0.5) * width for i in range(len(labels))],
            heights,
            width,
            label=name,
            color=COLOURS[name],
        )
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_yscale("log")
    axis.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    axis.set_ylabel("speed beside the best peer")
    axis.legend(fontsize=8, ncols=4)


def _roofline(axis, kernels, machine):
    """Steps with known operations by operations a byte; the area of a dot is its time."""
    threads = machine["threads"]
    peak = machine["fma"][str(threads)]
    xs = [2.0 ** (i / 4) for i in range(-12, 49)]
    for level in machine["levels"]:
        rate = max(level[f"read {threads}"], level[f"copy {threads}"])
        axis.plot(xs, [min(peak, rate * x) for x in xs], linewidth=1, label=f"{level['level']}, {rate:.0f} GB/s")
    for model, found in kernels.items():
        steps = [s for s in found["steps"] if s["gflops"] and s["gbytes"]]
        if steps:
            axis.scatter(
                [s["gflops"] / s["gbytes"] for s in steps], [s["gflops"] for s in steps], label=model, alpha=0.6,
                s=[10 + 300 * s["share"] for s in steps],
            )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("operations a byte")
    axis.set_ylabel("GFLOP/s")
    axis.legend(fontsize=8, ncols=3)
