"""The demo's pictures: loss curves, and a fused graph as boxes (kernels, library calls) joined by the buffers they pass."""

import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import FancyBboxPatch  # noqa: E402

COLORS = {"kernel": "#cfe3f7", "library": "#fbdcb8", "other": "#e4e4e4"}
LABELS = {"kernel": "generated kernel", "library": "library call", "other": "other step"}


def loss_curves(curves, path):
    """One panel a training; `curves`: {title: {label: losses}}."""
    if not curves:
        return
    figure, axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 3.8), squeeze=False)
    styles = {"eager": dict(color="#d95f02", lw=2.6, alpha=0.55), "compiled": dict(color="#1b6ca8", lw=1.0)}
    for axis, (title, lines) in zip(axes[0], curves.items()):
        for label, losses in lines.items():
            axis.plot(range(1, len(losses) + 1), losses, label=label, **styles[label])
        axis.set_title(title)
        axis.set_xlabel("step")
        axis.set_ylabel("training loss")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def size(count):
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"


def group(node):
    """Which colour class a step belongs to."""
    return node["class"] if node["class"] in COLORS else "other"


def describe(node):
    ops = list(node["ops"])
    shown = ", ".join(ops[:14]) + (f", ... ({len(ops)} ops)" if len(ops) > 14 else "")
    name = node["name"].split("_")[0] if node["class"] == "kernel" else node["name"]
    lines = textwrap.wrap(shown, 42) if shown != node["name"] else []
    return [name, *lines], f"{size(node['read'])} in, {size(node['written'])} out"


def layers_of(count, edges):
    """Rows of step numbers by longest path, each row ordered by where the operands are."""
    depth = [0] * count
    for a, b in edges:  # steps are in order of execution, so operands come first
        depth[b] = max(depth[b], depth[a] + 1)
    for i in reversed(range(count)):  # what needs nothing stands just above its first reader
        readers = [depth[b] for a, b in edges if a == i]
        if readers and not any(b == i for _, b in edges):
            depth[i] = min(readers) - 1
    rows = [[i for i in range(count) if depth[i] == d] for d in range(max(depth, default=0) + 1)]
    place = {}
    for row in rows:
        operands = {i: [place[a] for a, b in edges if b == i and a in place] for i in row}
        row.sort(key=lambda i: (sum(operands[i]) / len(operands[i]) if operands[i] else 0.0, i))
        for k, i in enumerate(row):
            place[i] = k - (len(row) - 1) / 2
    return rows, place


def fused_graph(graph, path, title):
    """Draws the steps from top to bottom; a box lists a step's ops and the bytes it reads and writes."""
    steps = graph["nodes"]
    edges = sorted(map(tuple, graph["edges"]))
    rows, place = layers_of(len(steps), edges)
    texts = [describe(s) for s in steps]
    wide, line, gap = 3.6, 0.17, 0.45
    heights = [line * (len(lines) + 1) + 0.16 for lines, _ in texts]
    position, y = {}, 0.0
    for row in rows:
        tall = max(heights[i] for i in row)
        for i in row:
            position[i] = (place[i] * wide, y - tall / 2)
        y -= tall + gap
    across = max((len(r) for r in rows), default=1) * wide
    figure, axis = plt.subplots(figsize=(max(6.0, across + 0.6), -y + 1.3))
    for a, b in edges:
        (xa, ya), (xb, yb) = position[a], position[b]
        bend = 0.0 if abs(xa - xb) > 0.1 or ya - yb < 2.2 else 0.35
        arrow = dict(
            arrowstyle="-|>", color="#777777", lw=0.8, shrinkA=0, shrinkB=0, connectionstyle=f"arc3,rad={bend}"
        )
        axis.annotate("", (xb, yb + heights[b] / 2), (xa, ya - heights[a] / 2), arrowprops=arrow)
    for i, step in enumerate(steps):
        draw_step(axis, position[i], wide - 0.3, heights[i], line, texts[i], COLORS[group(step)])
    present = [k for k in LABELS if any(group(s) == k for s in steps)]
    handles = [plt.Rectangle((0, 0), 1, 1, fc=COLORS[k], ec="#555555") for k in present]
    counts = [f"{LABELS[k]} ({sum(group(s) == k for s in steps)})" for k in present]
    axis.legend(handles, counts, loc="upper left", fontsize=8, frameon=False)
    axis.set_title(title)
    half = max(across, 5.4) / 2 + 0.2
    axis.set_xlim(-half, half)
    axis.set_ylim(y, 0.7)
    axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_step(axis, center, width, height, line, text, color):
    (x, y), (lines, sizes) = center, text
    box = FancyBboxPatch(
        (x - width / 2, y - height / 2),
        width,
        height,
        boxstyle="round,pad=0.02",
        fc=color,
        ec="#555555",
        lw=0.8,
        zorder=3,
    )
    axis.add_patch(box)
    top = y + height / 2 - 0.14
    for k, part in enumerate([*lines, sizes]):
        weight, style = "bold" if k == 0 else "normal", "italic" if k == len(lines) else "normal"
        axis.text(x, top - k * line, part, ha="center", va="center", fontsize=7, weight=weight, style=style, zorder=4)
