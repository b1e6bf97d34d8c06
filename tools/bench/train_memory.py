"""Peak memory of one GPT training step, eager and compiled, from the allocator's own counters.

python tools/bench/train_memory.py [--json PATH]
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "bench")]

from programs import load  # noqa: E402

LIMIT = 0.7  # of eager's peak


def measure(how):
    """Bytes above what model and optimizer hold, at the peak of a warm step; and that resting level."""
    import dlc

    program = load("chargpt", "dlc")
    text = program.Text()
    model, optimizer = program.setup(len(text.alphabet))
    step = program.make_step(model, optimizer)
    if how == "step":
        step = dlc.compile(step)
    elif how == "model":
        model = dlc.compile(model)
        step = program.make_step(model, optimizer)
    data = list(program.batches(text.train, 4))
    for x, y in data[:3]:
        loss = step(x, y)
    dlc.reset_peak_memory_stats()
    resting = dlc.memory_stats()["allocated"]
    loss = step(*data[3])
    return {
        "resting": resting,
        "peak": dlc.memory_stats()["peak_allocated"],
        "loss": float(loss),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    figures = {how: measure(how) for how in ("eager", "step", "model")}
    eager = figures["eager"]
    print(f"{'':24}{'resting MB':>12}{'peak MB':>12}{'of eager':>10}{'loss':>10}")
    for how, f in figures.items():
        name = {"eager": "eager", "step": "compiled step", "model": "compiled model"}[how]
        ratio = f["peak"] / eager["peak"]
        print(f"{name:24}{f['resting'] / 1e6:12.1f}{f['peak'] / 1e6:12.1f}{ratio:10.2f}{f['loss']:10.4f}")
    best = figures["step"]["peak"] / eager["peak"]
    print(f"compiled step: {best:.2f} of eager, {'at most' if best <= LIMIT else 'MISSED, more than'} {LIMIT} wanted")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
