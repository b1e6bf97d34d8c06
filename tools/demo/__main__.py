"""./dev demo: trains the example programs eager and compiled, shows what compiling did, and checks what must hold.

Pictures, the numbers and the phases of a GPT block (for dlc-opt) go to demo-out/; the exit status is 1 if a check fails.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import chargpt  # noqa: E402
import digits  # noqa: E402
import dlc  # noqa: E402
import pictures  # noqa: E402
from report import Checks, table  # noqa: E402
from tqdm import tqdm  # noqa: E402

WARM = 3  # steps left out of the timing


class Bar:
    """A progress bar that shows the loss."""

    def __init__(self, title, total):
        self.bar = tqdm(
            total=total,
            desc=f"{title:<14}",
            unit="step",
            dynamic_ncols=True,
            mininterval=0.1 if sys.stderr.isatty() else 15,
        )

    def __call__(self, i, total, loss):
        self.bar.update()
        self.bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
        if i == total - 1:
            self.bar.close()


def measure(title, total, train):
    """Runs train(on_step) and adds to its result how long steps took and how the compile counters moved."""
    dlc.reset_compile_stats()
    at_step = []
    bar = Bar(title, total)

    def on_step(i, steps, loss):
        at_step.append(dlc.compile_stats())
        bar(i, steps, loss)

    result = train(on_step)
    stats = at_step[-1]
    later = result["seconds"][min(WARM, len(result["seconds"]) - 1) :]
    result.update(
        stats=stats,
        ms=1e3 * statistics.median(later),
        first_ms=1e3 * result["seconds"][0],
        graphs=(stats["hits"] + stats["compilations"]) / len(at_step),
    )
    return result


def digits_runs(kind, epochs, checks):
    """The two runs of one digits model; (eager, compiled)."""
    steps = epochs * -(-len(digits.load_data()[0]) // digits.BATCH)
    runs = [
        measure(
            f"{kind} {how}",
            steps,
            lambda on_step, c=compiled: digits.train(kind, epochs, c, dropout=0.1 * (kind == "cnn"), on_step=on_step),
        )
        for how, compiled in (("eager", False), ("compiled", True))
    ]
    eager, compiled = runs
    gap = max(abs(a - b) for a, b in zip(eager["losses"][:50], compiled["losses"][:50]))
    checks.that(gap <= 1e-4, f"{kind}: losses of the first 50 steps equal to 1e-4 (largest difference {gap:.1e})")
    apart = abs(eager["accuracy"] - compiled["accuracy"])
    checks.that(
        apart <= 0.01, f"{kind}: test accuracy within 0.01 ({eager['accuracy']:.4f} and {compiled['accuracy']:.4f})"
    )
    if kind == "cnn":
        checks.that(compiled["accuracy"] >= 0.97, f"cnn: test accuracy at least 0.97 ({compiled['accuracy']:.4f})")
    graph_checks(kind, compiled, checks)
    checks.note(
        f"{kind}: a compiled step is {eager['ms'] / compiled['ms']:.2f} times as fast as an eager one ({compiled['ms']:.2f} and {eager['ms']:.2f} ms)"
    )
    return runs


def graph_checks(name, run, checks):
    stats = run["stats"]
    checks.that(run["graphs"] == 1, f"{name}: a step is one graph ({run['graphs']:g})")
    checks.that(stats["breaks"] == 0, f"{name}: no breaks ({stats['breaks']})")
    checks.that(stats["fallbacks"] == 0, f"{name}: no fallbacks ({stats['fallbacks']})")
    checks.that(stats["compilations"] <= 2, f"{name}: at most 2 compilations ({stats['compilations']})")


def gpt_runs(steps, eager_steps, checks):
    """Some eager steps for the comparison and the whole compiled training; (eager, compiled)."""
    eager = measure(
        "gpt eager", eager_steps, lambda on_step: chargpt.train(eager_steps, False, on_step=on_step, schedule=steps)
    )
    compiled = measure(
        "gpt compiled", steps, lambda on_step: chargpt.train(steps, True, on_step=on_step, schedule=steps)
    )
    text = compiled["text"]
    compiled["held_out"] = chargpt.held_out_loss(dlc.compile(compiled["model"]), text.held_out)
    gap = max(abs(a - b) for a, b in zip(eager["losses"], compiled["losses"]))
    checks.that(
        gap <= 1e-3, f"gpt: losses of the first {eager_steps} steps equal to 1e-3 (largest difference {gap:.1e})"
    )
    if steps >= chargpt.STEPS:
        checks.that(
            compiled["held_out"] < 2.2, f"gpt: held-out loss below 2.2 nats a character ({compiled['held_out']:.3f})"
        )
    graph_checks("gpt", compiled, checks)
    checks.note(
        f"gpt: a compiled step is {eager['ms'] / compiled['ms']:.2f} times as fast as an eager one ({compiled['ms']:.1f} and {eager['ms']:.1f} ms)"
    )
    return eager, compiled


def block_graphs(model, folder):
    """The fused graphs of one GPT block: forward alone, and with its backward. Every phase is dumped into `folder`."""
    block = model.blocks[0]
    x = dlc.randn(chargpt.BATCH, chargpt.CONTEXT, chargpt.WIDTH)

    def forward(x):
        with dlc.no_grad():
            return block(x)

    def training(x, gradient):
        y = block(x)
        grads = dlc.autograd.grad(y, list(block.parameters()), gradient)
        return y.detach(), grads

    graphs = {}
    for name, f, args in (("forward", forward, (x,)), ("training", training, (x, dlc.ones_like(x)))):
        f.__qualname__ = f"gpt-block-{name}"
        compiled = dlc.compile(f)
        with dlc.config.patch(dump_dir=str(folder)):
            compiled(*args)
        graphs[name] = json.loads(dlc.compiler.graph_json(compiled))
    return graphs


def row(name, run, quality):
    stats = run["stats"]
    compiled = stats["compilations"] > 0
    counts = [f"{run['graphs']:g}", *(stats[k] for k in ("breaks", "compilations", "fallbacks"))]
    plan = [stats[k] for k in ("kernels", "library_calls", "other_steps")]
    return [
        name,
        f"{run['losses'][-1]:.4f}",
        quality,
        f"{run['ms']:.2f}",
        f"{run['first_ms']:.0f}",
        *([f"{stats['compile_seconds']:.2f}", *counts, *plan] if compiled else ["-"] * 8),
    ]


HEADER = ["training", "last loss", "test", "ms/step", "first ms", "compile s", "graphs/step", "breaks", "compilations", "fallbacks",
          "kernels", "library calls", "other steps"]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps, for a first look")
    parser.add_argument(
        "--only", choices=["mlp", "cnn", "gpt"], action="append", help="only this training (may be repeated)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "demo-out")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    parts = args.only or ["mlp", "cnn", "gpt"]
    epochs, steps, eager_steps = (5, 30, 6) if args.quick else (digits.EPOCHS, chargpt.STEPS, 20)
    checks, rows, curves, record = Checks(), [], {}, {}
    start = time.perf_counter()
    for kind in [p for p in parts if p != "gpt"]:
        for how, run in zip(("eager", "compiled"), digits_runs(kind, epochs, checks)):
            rows.append(row(f"{kind} {how}", run, f"{run['accuracy']:.4f} acc"))
            curves.setdefault(f"digits {kind}", {})[how] = run["losses"]
            record[f"{kind} {how}"] = {k: run[k] for k in ("losses", "accuracy", "ms", "first_ms", "graphs", "stats")}
    if "gpt" in parts:
        eager, compiled = gpt_runs(steps, eager_steps, checks)
        for how, run in (("eager", eager), ("compiled", compiled)):
            rows.append(row(f"gpt {how}", run, f"{run['held_out']:.4f} nats" if "held_out" in run else "-"))
            curves.setdefault("character GPT", {})[how] = run["losses"]
            record[f"gpt {how}"] = {
                k: run[k] for k in ("losses", "held_out", "ms", "first_ms", "graphs", "stats") if k in run
            }
        print("\nA sample of the trained model:\n" + chargpt.sample(compiled["model"], compiled["text"]) + "\n")
        for name, graph in block_graphs(compiled["model"], args.out / "phases").items():
            (args.out / f"gpt-block-{name}.json").write_text(json.dumps(graph, indent=1))
            pictures.fused_graph(graph, args.out / f"gpt-block-{name}.png", f"GPT block, {name}: fused graph")
    pictures.loss_curves(curves, args.out / "loss.png")
    (args.out / "demo.json").write_text(json.dumps(record, indent=1))
    print(table(HEADER, rows))
    print(f"\n{time.perf_counter() - start:.0f} s; pictures and numbers in {args.out}\n")
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
