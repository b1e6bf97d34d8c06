"""./dev bench first-light: dlc eager and compiled, PyTorch eager and torch.compile, ONNX Runtime, all from one run.

Runs in the virtual environment of the peers with dlc importable beside them. Weights are the same everywhere and
results are compared before anything is timed. Candidates take turns, so that a change of the machine's speed hits
all alike; a time is the median over rounds (the smallest is in the JSON file too).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "bench"), str(ROOT / "tools" / "demo")]

from programs import load  # noqa: E402
from report import Checks, table  # noqa: E402
from timing import interleave  # noqa: E402

CANDIDATES = ("dlc eager", "dlc compiled", "torch eager", "torch.compile")
CLOCK = {"wall": time.perf_counter, "cpu": time.process_time}


def framework_of(candidate):
    return "dlc" if candidate.startswith("dlc") else "torch"


def is_compiled(candidate):
    return candidate in ("dlc compiled", "torch.compile")


def set_threads(count):
    import dlc
    import torch

    dlc.set_num_threads(count)
    torch.set_num_threads(count)


def clock():
    return CLOCK[os.environ["FIRST_LIGHT_CLOCK"]]


def agree(results, what, tolerance):
    """Raises unless all candidates' arrays are equal within `tolerance` of the largest value."""
    reference = results["torch eager"]
    for name, got in results.items():
        gap = np.abs(np.asarray(got) - reference).max() / max(1.0, np.abs(reference).max())
        if not gap <= tolerance:
            raise SystemExit(f"{what}: {name} differs from PyTorch by {gap:.2e} (at most {tolerance:g} expected)")


def training_data(program, kind, framework):
    """A few batches for one framework, the same ones for all."""
    if kind == "gpt":
        return list(program.batches(program.Text().train, 4))
    x, y, _, _ = program.load_data()
    return [b for b in program.batches(x, y, 1) if b[0].shape[0] == program.BATCH][:8]


def make_model(kind, framework):
    program = load("chargpt" if kind == "gpt" else "digits", framework)
    model, optimizer = program.setup(len(program.Text().alphabet)) if kind == "gpt" else program.setup(kind)
    return program, model, optimizer


def training_call(kind, candidate):
    """(call that trains one step and returns its loss, losses of the first steps)."""
    framework = framework_of(candidate)
    program, model, optimizer = make_model(kind, framework)
    step = program.make_step(model, optimizer)
    if is_compiled(candidate):
        step = program.torch.compile(step)
    data = training_data(program, kind, framework)
    state = {"i": 0}

    def call():
        x, y = data[state["i"] % len(data)]
        state["i"] += 1
        return step(x, y)

    return call, [float(call()) for _ in range(4)]


def inference_call(kind, candidate, batch):
    """(call that runs the model without gradients, its result as an array)."""
    framework = framework_of(candidate)
    program, model, _ = make_model(kind, framework)
    torch = program.torch
    model.eval()
    if kind == "gpt":
        x = program.Text().train[: batch * program.CONTEXT].reshape(batch, program.CONTEXT)
    else:
        x = program.load_data()[0][:batch]
    x = torch.from_numpy(np.ascontiguousarray(x))
    run = torch.compile(model) if is_compiled(candidate) else model

    def call():
        with torch.no_grad():
            return run(x)

    call()
    return call, call().numpy()


def trainings(kinds, names, rounds):
    results = {}
    for kind in kinds:
        calls, losses = {}, {}
        for name in names:
            say(f"training {kind}: {name}")
            calls[name], losses[name] = training_call(kind, name)
        agree(losses, f"training {kind}", 1e-3)
        results[f"train {kind}"] = interleave(calls, rounds, 0.5 if kind == "gpt" else 0.1, clock())
    return results


def inferences(kinds, names, rounds):
    results = {}
    for kind in kinds:
        for batch in (64, 1):
            calls, values = {}, {}
            for name in names:
                say(f"inference {kind}, batch {batch}: {name}")
                calls[name], values[name] = inference_call(kind, name, batch)
            agree(values, f"inference {kind}, batch {batch}", 1e-3)
            results[f"infer {kind} x{batch}"] = interleave(calls, rounds, 0.1, clock())
    return results


def small_mlp(names, rounds, threads):
    """A three-layer MLP of width 64 at batch 1, where the cost of a call counts; ONNX Runtime too."""
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((64, 64)).astype(np.float32) / 8, np.zeros(64, np.float32)) for _ in range(3)]
    x = rng.standard_normal((1, 64)).astype(np.float32)
    calls, values = {}, {}
    for name in names:
        program = load("digits", framework_of(name))
        torch, nn = program.torch, program.nn
        layers = [nn.Linear(64, 64) for _ in range(3)]
        with torch.no_grad():
            for layer, (w, b) in zip(layers, weights):
                layer.weight.copy_(torch.from_numpy(w))
                layer.bias.copy_(torch.from_numpy(b))
        model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
        run = torch.compile(model) if is_compiled(name) else model
        calls[name], values[name] = no_grad_call(torch, run, torch.from_numpy(x))
    session = onnx_session(weights, threads)
    calls["ONNX Runtime"] = lambda: session.run(None, {"x": x})[0]
    values["ONNX Runtime"] = calls["ONNX Runtime"]()
    agree(values, "small MLP", 1e-4)
    return {"mlp 3x64 x1": interleave(calls, rounds * 2, 0.05, clock())}


def no_grad_call(torch, run, x):
    """The call, inside one no_grad region entered at each call, and its value."""

    def call():
        with torch.no_grad():
            return run(x)

    call()
    return call, call().numpy()


def onnx_session(weights, threads):
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    nodes, constants, value = [], [], "x"
    for i, (w, b) in enumerate(weights):
        constants += [numpy_helper.from_array(w, f"w{i}"), numpy_helper.from_array(b, f"b{i}")]
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [f"h{i}"], transB=1))
        value = f"h{i}"
        if i < len(weights) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"r{i}"]))
            value = f"r{i}"
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "mlp",
        [shape("x", onnx.TensorProto.FLOAT, [1, 64])],
        [shape(value, onnx.TensorProto.FLOAT, [1, 64])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def first_call(kind, candidate, threads):
    """Seconds of the first and of the second step in this process; the child's side of `compile_times`."""
    framework = framework_of(candidate)
    program, model, optimizer = make_model(kind, framework)
    program.torch.set_num_threads(threads)
    step = program.make_step(model, optimizer)
    if is_compiled(candidate):
        step = program.torch.compile(step)
    x, y = training_data(program, kind, framework)[0]
    times = []
    for _ in range(2):
        start = time.perf_counter()
        float(step(x, y))
        times.append(time.perf_counter() - start)
    stats = program.torch.compile_stats() if framework == "dlc" else {}
    print(
        json.dumps(
            {
                "first": times[0],
                "second": times[1],
                "llvm": stats.get("llvm_compilations"),
                "compilations": stats.get("compilations"),
            }
        )
    )


def compile_times(kinds, names, repeats, threads):
    """First calls in processes of their own: cold caches, and for dlc a second process that finds the first one's."""
    results = {}
    for kind in kinds:
        for name in [n for n in names if is_compiled(n)]:
            for _ in range(repeats if name == "dlc compiled" else 1):
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("cold", "warm"):
                        say(f"first call of {kind}: {name}, {state}")
                        entry = results.setdefault(f"first call {kind}", {}).setdefault(f"{name} {state}", [])
                        entry.append(child(kind, name, threads, cache))
    return results


def child(kind, name, threads, cache):
    environment = dict(os.environ, DLC_CACHE_DIR=cache, XDG_CACHE_HOME=cache, TORCHINDUCTOR_CACHE_DIR=cache)
    command = [sys.executable, __file__, "--first-call", kind, name, "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"first call of {kind}, {name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def milliseconds(seconds):
    return f"{1e3 * seconds:.3f}" if seconds < 0.01 else f"{1e3 * seconds:.1f}"


def times_table(results):
    names = [*CANDIDATES, "ONNX Runtime"]
    rows = [[what, *(milliseconds(r[n]["median"]) if n in r else "-" for n in names)] for what, r in results.items()]
    return table(["ms a call (median)", *names], rows)


def first_call_table(results):
    rows = []
    for what, r in results.items():
        for name, entries in r.items():
            best = min(entries, key=lambda e: e["first"])
            rows.append(
                [
                    what,
                    name,
                    milliseconds(best["first"]),
                    milliseconds(best["second"]),
                    best["llvm"] if best["llvm"] is not None else "-",
                ]
            )
    return table(["first calls in a new process", "candidate", "first ms", "second ms", "LLVM compilations"], rows)


def check_speed(results, checks):
    """What the first light promises of these ratios."""
    for what, r in results.items():
        if not {"dlc eager", "dlc compiled", "torch eager"} <= set(r):
            continue
        time_of = {n: v["median"] for n, v in r.items()}
        gain = time_of["dlc eager"] / time_of["dlc compiled"]
        if what.startswith("mlp 3x64"):
            micros = 1e6 * time_of["dlc compiled"]
            checks.that(micros <= 40, f"{what}: compiled at most 40 us a call ({micros:.1f})")
            continue
        wanted = 1.5 if what == "train gpt" else 0.9 if what.endswith("x1") else 1.0
        checks.that(gain >= wanted, f"{what}: compiled at least {wanted:g} times as fast as eager ({gain:.2f})")
        eager = time_of["dlc eager"] / time_of["torch eager"]
        checks.that(eager <= 1.3, f"{what}: eager takes at most 1.3 times PyTorch's time ({eager:.2f})")
        if what == "train gpt":
            ahead = time_of["torch eager"] / time_of["dlc compiled"]
            checks.that(ahead >= 1.3, f"{what}: compiled at least 1.3 times as fast as PyTorch eager ({ahead:.2f})")


def check_first_calls(results, checks):
    for what, r in results.items():
        first = {name: min(e["first"] for e in entries) for name, entries in r.items()}
        cold, warm = first["dlc compiled cold"], first["dlc compiled warm"]
        if what.endswith("mlp"):  # a step of the others takes as long as their compilation
            checks.that(warm <= cold / 5, f"{what}: with a warm cache at most 1/5 of cold ({warm / cold:.2f})")
        llvm = sum(e["llvm"] for e in r["dlc compiled warm"])
        checks.that(llvm == 0, f"{what}: no LLVM compilations with a warm cache ({llvm})")
        if "torch.compile cold" in first and what.endswith("mlp"):
            share = cold / first["torch.compile cold"]
            checks.that(share <= 0.1, f"{what}: at most 1/10 of torch.compile's first call ({share:.3f})")


def versions(threads):
    import dlc
    import onnxruntime
    import torch

    return {
        "dlc": dlc.__version__,
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
        "threads": threads,
        "clock": os.environ["FIRST_LIGHT_CLOCK"],
    }


def main():
    parser = argparse.ArgumentParser(prog="./dev bench first-light", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--only", action="append", choices=["train", "infer", "small", "first"], help="only these parts"
    )
    parser.add_argument("--model", action="append", choices=["mlp", "cnn", "gpt"], help="only these models")
    parser.add_argument("--without", action="append", default=[], choices=CANDIDATES, help="leave a candidate out")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--clock", choices=CLOCK, default="wall", help="cpu: processor time, for one thread on a busy machine"
    )
    parser.add_argument("--json", type=Path, default=ROOT / "demo-out" / "first_light.json")
    parser.add_argument("--first-call", nargs=2, metavar=("MODEL", "CANDIDATE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.first_call:
        return first_call(*args.first_call, args.threads)
    os.environ["FIRST_LIGHT_CLOCK"] = args.clock
    parts, kinds = args.only or ["first", "small", "train", "infer"], args.model or ["mlp", "cnn", "gpt"]
    names = [n for n in CANDIDATES if n not in args.without]
    set_threads(args.threads)
    results, first, checks = {}, {}, Checks()
    if "first" in parts:
        first = compile_times([k for k in kinds if k != "cnn"], names, 3, args.threads)
    if "small" in parts:
        results |= small_mlp(names, args.rounds, args.threads)
    if "train" in parts:
        results |= trainings(kinds, names, args.rounds)
    if "infer" in parts:
        results |= inferences(kinds, names, args.rounds)
    about = versions(args.threads)
    print(", ".join(f"{k} {v}" for k, v in about.items()) + "\n")
    if results:
        print(times_table(results) + "\n")
        check_speed(results, checks)
    if first:
        print(first_call_table(first) + "\n")
        check_first_calls(first, checks)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({"about": about, "times": results, "first_calls": first}, indent=1))
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
