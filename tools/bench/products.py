"""Matrix products: generated kernels against kernels/lib, OpenBLAS and PyTorch (MKL, oneDNN) on one core.

All sides run in this process, in turns, on the thread's CPU clock; figures are GFLOP/s of the fastest turn, and the share
of the FMA peak measured beside it. `W` marks a right-hand side that is constant: ours packs it once, the peers get what
they like best (PyTorch: as stored by nn.Linear).

    ./dev bench products [--rounds 5] [--filter text]
"""

import argparse
import ctypes
import math
import os
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")  # it does not know what a virtual machine is

SHAPES = [  # name, m, n, k, kind: "W" constant rhs (stored n x k), "NN", "NT", "TN"
    ("square", 64, 64, 64, "NN"),
    ("square", 128, 128, 128, "NN"),
    ("square", 256, 256, 256, "NN"),
    ("square", 512, 512, 512, "NN"),
    ("square", 1024, 1024, 1024, "NN"),
    ("square, A^T", 1024, 1024, 1024, "TN"),
    ("square, B^T", 1024, 1024, 1024, "NT"),
    ("small_mlp", 1, 64, 64, "W"),
    ("mlp 1", 64, 512, 784, "W"),
    ("mlp 2", 64, 512, 512, "W"),
    ("mlp 3", 64, 10, 512, "W"),
    ("encoder qkv", 128, 1152, 384, "W"),
    ("encoder out", 128, 384, 384, "W"),
    ("encoder up", 128, 1536, 384, "W"),
    ("encoder down", 128, 384, 1536, "W"),
    ("encoder, 17 tokens", 17, 384, 384, "W"),
    ("encoder, 512 tokens", 512, 1536, 384, "W"),
    ("scores", 128, 128, 32, "NT"),
    ("values", 128, 32, 128, "NN"),
    ("decode qkv", 1, 1536, 512, "W"),
    ("decode up", 1, 2048, 512, "W"),
    ("decode down", 1, 512, 2048, "W"),
    ("decode head", 1, 32000, 512, "W"),
    ("decode, 4 at once", 4, 2048, 512, "W"),
    ("decode, 16 at once", 16, 2048, 512, "W"),
    ("resnet 56 64-64", 3136, 64, 64, "W"),
    ("resnet 56 64-256", 3136, 256, 64, "W"),
    ("resnet 56 256-64", 3136, 64, 256, "W"),
    ("resnet 28 256-128", 784, 128, 256, "W"),
    ("resnet 28 128-512", 784, 512, 128, "W"),
    ("resnet 14 512-256", 196, 256, 512, "W"),
    ("resnet 14 256-1024", 196, 1024, 256, "W"),
    ("resnet 7 1024-512", 49, 512, 1024, "W"),
    ("resnet 7 512-2048", 49, 2048, 512, "W"),
    ("resnet fc", 1, 1000, 512, "W"),
    ("mobilenet 56 16-72", 3136, 72, 16, "W"),
    ("mobilenet 28 72-24", 784, 24, 72, "W"),
    ("mobilenet 14 40-240", 196, 240, 40, "W"),
    ("mobilenet 7 576-96", 49, 96, 576, "W"),
    ("LSTM", 8, 512, 192, "W"),
    ("LSTM input", 400, 512, 64, "W"),
    ("LSTM, batch 1", 1, 512, 128, "W"),
    ("train_mlp forward", 64, 512, 784, "NT"),
    ("train_mlp dX", 64, 784, 512, "NN"),
    ("train_mlp dW", 512, 784, 64, "TN"),
    ("train_mlp dW 2", 512, 512, 64, "TN"),
    ("train_mlp dW 3", 10, 512, 64, "TN"),
    ("train_gpt qkv", 512, 384, 128, "NT"),
    ("train_gpt up", 512, 512, 128, "NT"),
    ("train_gpt down", 512, 128, 512, "NT"),
    ("train_gpt dX up", 512, 128, 512, "NN"),
    ("train_gpt dX down", 512, 512, 128, "NN"),
    ("train_gpt dW up", 512, 128, 512, "TN"),
    ("train_gpt dW down", 128, 512, 512, "TN"),
    ("train_gpt scores", 64, 64, 32, "NT"),
    ("train_gpt head", 512, 256, 128, "NT"),
    ("tiny", 8, 8, 8, "NN"),
    ("tiny", 3, 3, 3, "NN"),
    ("tiny", 16, 32, 16, "NN"),
    ("odd", 127, 129, 131, "NN"),
    ("long sum", 64, 64, 20000, "NN"),
    ("outer", 512, 512, 4, "NN"),
    ("matrix x vector", 2048, 1, 512, "NN"),
]


def load(path):
    lib = ctypes.CDLL(path)
    lib.productMake.restype = ctypes.c_void_p
    lib.productMake.argtypes = (
        [ctypes.c_int64] * 3 + [ctypes.c_int] * 2 + [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    )
    lib.productSchedule.restype = ctypes.c_char_p
    lib.productSchedule.argtypes = [ctypes.c_void_p]
    lib.productCompileMs.restype = ctypes.c_double
    lib.productCompileMs.argtypes = [ctypes.c_void_p]
    lib.productRun.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64]
    lib.productFree.argtypes = [ctypes.c_void_p]
    lib.productTime.restype = ctypes.c_double
    lib.productTime.argtypes = [ctypes.c_void_p, ctypes.c_int] + [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    lib.productPeak.restype = ctypes.c_double
    lib.productBlas.restype = ctypes.c_char_p
    return lib


class Bench:
    """One shape with operands in memory."""

    def __init__(self, lib, torch, m, n, k, kind, schedule="", dynamic=False):
        self.lib, self.torch, self.flops, self.kind = lib, torch, 2.0 * m * n * k, kind
        trans_a, trans_b = kind == "TN", kind in ("NT", "W")
        self.a = torch.randn(k, m) if trans_a else torch.randn(m, k)
        self.b = torch.randn(n, k) if trans_b else torch.randn(k, n)
        self.c = torch.empty(m, n)
        self.left = self.a.t() if trans_a else self.a
        self.right = self.b.t() if trans_b else self.b
        packed = self.b.data_ptr() if kind == "W" else None
        self.product = lib.productMake(m, n, k, trans_a, trans_b, packed, schedule.encode(), dynamic)
        if not self.product:
            raise SystemExit(f"{m} x {n} x {k} can't be compiled")
        self.repeats = int(min(3000, max(3, 5e7 / self.flops)))
        self.pointers = self.a.data_ptr(), self.b.data_ptr(), self.c.data_ptr()

    def check(self):
        self.lib.productRun(self.product, *self.pointers, 3)
        want = (self.left.double() @ self.right.double()).float()
        error = (self.c - want).abs().max().item() / max(1e-30, want.abs().max().item())
        assert error < 2e-5, f"wrong result, {error}"

    def time(self, side):
        if side != "torch":
            number = {"dlc": 0, "lib": 1, "lib packed": 2, "OpenBLAS": 3}[side]
            return self.lib.productTime(self.product, number, *self.pointers, self.repeats)
        torch, left, right, c = self.torch, self.left, self.right, self.c
        torch.mm(left, right, out=c)
        start = time.thread_time()
        for _ in range(self.repeats):
            torch.mm(left, right, out=c)
        return (time.thread_time() - start) / self.repeats

    def close(self):
        self.lib.productFree(self.product)


def measure(bench, sides, rounds):
    best = {}
    for _ in range(rounds):
        for side in sides:
            best[side] = min(best.get(side, 1e9), bench.time(side))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filter", default="")
    parser.add_argument("--schedule", default="", help="fields of the schedule, as text")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--dynamic", action="store_true", help="m is an argument of the kernel")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    lib = load(args.library)
    peers = ["OpenBLAS"] if args.no_torch else ["OpenBLAS", "torch"]
    sides = ["dlc", "lib"] + peers
    print(f"FMA peak {lib.productPeak():.0f} GFLOP/s, OpenBLAS for {lib.productBlas().decode()}")
    print(f"{'':22} {'m':>5} {'n':>5} {'k':>5}    | " + " | ".join(f"{s:>9}" for s in sides) + " | of peak | best peer")
    ratios = []
    for name, m, n, k, kind in SHAPES:
        if args.filter and args.filter not in name:
            continue
        bench = Bench(lib, torch, m, n, k, kind, args.schedule, args.dynamic)
        bench.check()
        bench_sides = ["lib packed" if s == "lib" and kind == "W" else s for s in sides]
        best = measure(bench, bench_sides, args.rounds)
        peak = lib.productPeak()
        rate = {s: bench.flops / t * 1e-9 for s, t in best.items()}
        ratio = min(best[p] for p in peers) / best["dlc"]
        ratios.append(ratio)
        schedule = lib.productSchedule(bench.product).decode().replace("#kernel.schedule", "")
        print(
            f"{name:22} {m:5} {n:5} {k:5} {kind:>2} | "
            + " | ".join(f"{rate[s]:9.1f}" for s in bench_sides)
            + f" | {rate['dlc'] / peak:7.2f} | {ratio:5.2f}x {lib.productCompileMs(bench.product):4.0f} ms {schedule}",
            flush=True,
        )
        bench.close()
    geomean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geomean {geomean:.2f}x over {len(ratios)} shapes, worst {min(ratios):.2f}x")


if __name__ == "__main__":
    main()
