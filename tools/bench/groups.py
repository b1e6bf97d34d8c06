"""./dev bench groups: groups of ops that are bound by memory: dlc compiled and eager against PyTorch and torch.compile.

A row is one compiled function. `GB/s` are the bytes that have to be moved (inputs read once, results written once) over
the fastest time, `copy` is that rate over the rate at which the same number of bytes is copied on the same threads, in
the same process; `x` are the times of the others over dlc's. Groups that end in `grad` are a forward and a backward.
Results are compared before anything is timed. A peer that isn't installed prints "-".

python tools/bench/groups.py [--only SUBSTRING,...] [--ms 40] [--no-peers] [--json PATH]
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "demo")]

from report import table  # noqa: E402

THREADS, ROUNDS = 2, 6
GROUPS = []  # (name, shapes or makers of the inputs, function of (framework, functional, inputs), which need gradients)


def group(name, *inputs, grad=()):
    def add(f):
        GROUPS.append((name, inputs, f, grad))
        return f

    return add


def ints(high, *shape):
    return ("ints", high, shape)


def mask(*shape):
    return ("mask", 0, shape)


R, C = (512, 1024), (1024,)


@group("layer_norm", R, C, C)
def layer_norm(t, F, x, w, b):
    return F.layer_norm(x, C, w, b)


@group("layer_norm grad", R, C, C, grad=(0, 1, 2))
def layer_norm_grad(t, F, x, w, b):
    return F.layer_norm(x, C, w, b)


@group("rms_norm", R, C)
def rms_norm(t, F, x, w):
    return F.rms_norm(x, C, w)


@group("rms_norm grad", R, C, grad=(0, 1))
def rms_norm_grad(t, F, x, w):
    return F.rms_norm(x, C, w)


@group("add, layer_norm", R, R, C, C)
def residual_norm(t, F, x, r, w, b):
    h = x + r
    return h, F.layer_norm(h, C, w, b)


@group("softmax", R)
def softmax(t, F, x):
    return t.softmax(x, -1)


@group("softmax, outer dim", R)
def softmax_outer(t, F, x):
    return t.softmax(x, 0)


@group("softmax, middle dim", (8, 256, 256))
def softmax_middle(t, F, x):
    return t.softmax(x, 1)


@group("softmax grad", R, grad=(0,))
def softmax_grad(t, F, x):
    return t.softmax(x, -1)


@group("softmax, masked", R, mask(*R))
def softmax_masked(t, F, x, m):
    return t.softmax(t.where(m, x, float("-inf")), -1)


@group("log_softmax grad", R, grad=(0,))
def log_softmax_grad(t, F, x):
    return t.log_softmax(x, -1)


@group("cross_entropy", (512, 10000), ints(10000, 512))
def cross_entropy(t, F, x, y):
    return F.cross_entropy(x, y)


@group("cross_entropy grad", (512, 10000), ints(10000, 512), grad=(0,))
def cross_entropy_grad(t, F, x, y):
    return F.cross_entropy(x, y)


@group("sum of columns", (2048, 1024))
def column_sum(t, F, x):
    return x.sum(0)


@group("sum of rows", (2048, 1024))
def row_sum(t, F, x):
    return x.sum(1)


@group("sum over the middle", (16, 128, 512))
def middle_sum(t, F, x):
    return x.sum(1)


@group("sum of all", (2048, 1024))
def full_sum(t, F, x):
    return x.sum()


@group("mean of few columns", (65536, 16))
def narrow_mean(t, F, x):
    return x.mean(0)


@group("variance of rows", (2048, 512))
def variance(t, F, x):
    return t.var(x, 1)


@group("batch statistics", (32, 64, 28, 28))
def batch_statistics(t, F, x):
    return x.mean((0, 2, 3)), (x * x).mean((0, 2, 3))


@group("batch_norm, relu", (32, 64, 28, 28), (64,), (64,))
def batch_norm(t, F, x, w, b):
    return t.relu(F.batch_norm(x, None, None, w, b, True))


@group("batch_norm, relu grad", (32, 64, 28, 28), (64,), (64,), grad=(0, 1, 2))
def batch_norm_grad(t, F, x, w, b):
    return t.relu(F.batch_norm(x, None, None, w, b, True))


@group("transpose", (1024, 1024))
def transpose(t, F, x):
    return x.t().contiguous()


@group("transpose, add", (1024, 1024), (1024, 1024))
def transpose_add(t, F, x, y):
    return x.t() + y


@group("split heads", (8, 128, 12, 64))
def split_heads(t, F, x):
    return x.permute(0, 2, 1, 3).contiguous()


@group("to channels last", (8, 64, 56, 56))
def to_channels_last(t, F, x):
    return x.permute(0, 2, 3, 1).contiguous()


@group("cat of rows", (256, 1024), (256, 1024))
def cat_rows(t, F, x, y):
    return t.cat([x * 2, y + 1], 0)


@group("cat of columns", (512, 512), (512, 512))
def cat_columns(t, F, x, y):
    return t.cat([x * 2, y + 1], 1)


@group("pad", (32, 16, 32, 32))
def pad(t, F, x):
    return F.pad(x, (1, 1, 1, 1)) * 2


@group("flip", R)
def flip(t, F, x):
    return t.flip(x, (1,)) + 1


@group("roll halves, rotate", (8, 128, 512), (128, 512), (128, 512))
def rotary(t, F, x, c, s):
    a, b = x[..., :256], x[..., 256:]
    return x * c + t.cat([-b, a], -1) * s


@group("index_select", (4096, 256), ints(4096, 2048))
def index_select(t, F, x, i):
    return t.index_select(x, 0, i)


@group("gather", (512, 1024), ints(1024, 512, 512))
def gather(t, F, x, i):
    return t.gather(x, 1, i)


@group("embedding", (8192, 256), ints(8192, 2048))
def embedding(t, F, w, i):
    return F.embedding(i, w)


@group("embedding grad", (8192, 256), ints(8192, 2048), grad=(0,))
def embedding_grad(t, F, w, i):
    return F.embedding(i, w)


@group("index_add", (1024, 256), ints(1024, 2048), (2048, 256))
def index_add(t, F, x, i, y):
    return t.index_add(x, 0, i, y)


@group("bias, gelu", R, C)
def bias_gelu(t, F, x, b):
    return F.gelu(x + b)


@group("bias, gelu grad", R, C, grad=(0, 1))
def bias_gelu_grad(t, F, x, b):
    return F.gelu(x + b)


@group("silu * gate", R, R)
def swiglu(t, F, x, y):
    return F.silu(x) * y


@group("dropout", R)
def dropout(t, F, x):
    return F.dropout(x, 0.1, True)


@group("5 transcendentals", R)
def chain(t, F, x):
    return t.tanh(t.sin(t.exp(x * 0.5)) * t.cos(x) + t.log1p(t.abs(x)))


@group("pointwise", R)
def pointwise(t, F, x):
    y = t.tanh(t.sin(t.exp(x * 0.5)) * t.cos(x) + t.log1p(t.abs(x)))
    return (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-5)


@group("cumsum of rows", R)
def cumsum(t, F, x):
    return t.cumsum(x, 1)


@group("argmax of rows", (2048, 512))
def argmax(t, F, x):
    return x.argmax(1)


@group("max over outer dim", (2048, 512))
def max_outer(t, F, x):
    return t.amax(x, 0)


@group("axpy", R, R)
def axpy(t, F, x, y):
    return x * 0.5 + y


@group("broadcast outer", (1024, 1), (1, 1024))
def broadcast(t, F, x, y):
    return x * y + 1


@group("sigmoid bce", R, R)
def bce(t, F, x, y):
    return F.binary_cross_entropy_with_logits(x, y)


@group("mse grad", R, R, grad=(0,))
def mse_grad(t, F, x, y):
    return F.mse_loss(x, y)


def make_inputs(specs):
    import numpy as np

    rng = np.random.default_rng(0)
    arrays = []
    for spec in specs:
        if spec and spec[0] == "ints":
            arrays.append(rng.integers(0, spec[1], spec[2]))
        elif spec and spec[0] == "mask":
            arrays.append(rng.random(spec[2]) < 0.8)
        else:
            arrays.append(rng.standard_normal(spec).astype("float32"))
    return arrays


class Side:
    """One framework's way to run a group."""

    def __init__(self, kind, compiled):
        self.kind, self.compiled = kind, compiled
        if kind == "dlc":
            import dlc as t
            import dlc.nn.functional as F
        else:
            import torch as t
            import torch.nn.functional as F
        self.t, self.F = t, F

    def prepare(self, arrays, f, grad):
        t = self.t
        tensors = [t.tensor(a) if self.kind == "dlc" else t.from_numpy(a.copy()) for a in arrays]
        for k in grad:
            tensors[k].requires_grad_(True)

        def forward(*xs):
            return f(self.t, self.F, *xs)

        if not grad:
            return self.wrap(forward), tensors
        with t.no_grad():
            ones = t.ones_like(forward(*tensors))
        wanted = [tensors[k] for k in grad]
        if self.kind == "dlc":

            def both(*xs):
                y = forward(*xs)
                return (y,) + tuple(t.autograd.grad([y], [xs[k] for k in grad], [ones]))

            return self.wrap(both), tensors
        compiled = self.wrap(forward)

        def run(*xs):
            y = compiled(*xs)
            return (y,) + t.autograd.grad(y, wanted, ones)

        return run, tensors

    def wrap(self, f):
        if not self.compiled:
            return f
        if self.kind == "torch":
            self.t._dynamo.reset()
        return self.t.compile(f)


def leaves(x):
    return [v for y in x for v in leaves(y)] if isinstance(x, (tuple, list)) else [x]


def to_numpy(x):
    return x.detach().numpy()


def moved(arrays, results):
    """Bytes that must be moved if each input is read once and each result written once."""
    return sum(a.nbytes for a in arrays) + sum(r.nbytes for r in results)


class Copier:
    """The rate of copying: threads of this process, each a block."""

    def __init__(self):
        self.known = {}

    def rate(self, nbytes):
        import dlc

        n = max(1024, nbytes // 8)
        if n not in self.known:
            x, y = dlc.ones(n), dlc.ones(n)
            best = 1e9
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end:
                t0 = time.perf_counter()
                y.copy_(x)
                best = min(best, time.perf_counter() - t0)
            self.known[n] = 8 * n / best
        return self.known[n]


def interleaved(calls, ms):
    """Times of each call. They take turns of a few milliseconds: the threads that another one left spinning have then
    gone to sleep, and the data is in the caches again."""
    times = [[] for _ in calls]
    for _ in range(ROUNDS):
        for f, ts in zip(calls, times):
            end = time.perf_counter() + ms * 1e-3 / ROUNDS
            f()
            done = 0
            while done < 4 or time.perf_counter() < end:
                t0 = time.perf_counter()
                f()
                ts.append(time.perf_counter() - t0)
                done += 1
    return times


def compare(name, reference, results, who):
    import numpy as np

    for a, b in zip(reference, results):
        if not np.allclose(a, b, rtol=2e-3, atol=2e-4, equal_nan=True):
            print(f"{name}: {who} differs by {np.abs(a - b).max()}", file=sys.stderr)


def measure(entry, sides, ms, copier):
    name, specs, f, grad = entry
    arrays = make_inputs(specs)
    calls, names, row, reference = [], [], {"group": name}, None
    for label, side in sides:
        try:
            run, tensors = side.prepare(arrays, f, grad)
            for _ in range(3):
                results = [to_numpy(r) for r in leaves(run(*tensors))]
        except Exception as e:  # a peer may lack an op: its column shows that
            print(f"{name}: {label}: {type(e).__name__}: {str(e).splitlines()[0]}", file=sys.stderr)
            continue
        if reference is None:
            reference = results
        elif name != "dropout":
            compare(name, reference, results, label)
        calls.append(lambda run=run, tensors=tensors: run(*tensors))
        names.append(label)
    times = interleaved(calls, ms)
    for label, ts in zip(names, times):
        row[label] = {"min": min(ts), "median": statistics.median(ts)}
    row["bytes"] = moved(arrays, reference)
    row["copy"] = copier.rate(row["bytes"])
    return row


def shown(row):
    mine = row["dlc"]["min"]
    rate = row["bytes"] / mine
    others = [f"{row[k]['min'] / mine:.2f}" if k in row else "-" for k in ("dlc eager", "torch", "torch.compile")]
    return [row["group"], f"{mine * 1e6:.0f}", f"{rate / 1e9:.1f}", f"{rate / row['copy']:.2f}", *others]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names that contain one of these, separated by commas")
    parser.add_argument("--ms", type=float, default=40, help="milliseconds for each candidate and group")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    import dlc

    dlc.set_num_threads(THREADS)
    sides = [("dlc", Side("dlc", True)), ("dlc eager", Side("dlc", False))]
    try:
        if not args.no_peers:
            import torch

            torch.set_num_threads(THREADS)
            sides += [("torch", Side("torch", False)), ("torch.compile", Side("torch", True))]
    except ImportError:
        pass
    copier, rows = Copier(), []
    for entry in GROUPS:
        if args.only and not any(s in entry[0] for s in args.only.split(",")):
            continue
        rows.append(measure(entry, sides, args.ms, copier))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    head = ["group", "us", "GB/s", "copy", "eager x", "torch x", "compile x"]
    print(table(head, [shown(r) for r in rows]))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
