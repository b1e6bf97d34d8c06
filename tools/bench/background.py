"""The first calls of functions compiled with background=True against eager ones, and when compiled code takes over.

    python tools/bench/background.py

Prints, for each program: the best time of later and of first eager calls, of the first call with and without
background=True, of a call made while the code is not ready, and of compiled calls. The function and its tensors are new
in each repetition; kernels that the process has are shared, those on disk are not used.
"""

import os
import time

os.environ.setdefault("DLC_CACHE_LIMIT_MB", "0")

import dlc
from dlc import nn

REPEAT = 15


class Block(nn.Module):
    """One transformer layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def mlp(batch):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, dlc.rand(batch, 64)


def transformer(batch):
    return nn.Sequential(Block(128, 4), Block(128, 4)), dlc.rand(batch, 64, 128)


def train_step(batch):
    model, x = mlp(batch)
    optimizer = dlc.optim.SGD(model.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step, x


PROGRAMS = {
    "MLP, batch 64": lambda: mlp(64),
    "2 transformer layers, batch 8": lambda: transformer(8),
    "MLP training step, batch 64": lambda: train_step(64),
}


def timed(call, *args):
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def measure(make):
    """Seconds, the best of some new functions each: eager, first calls eager, in the background and not, later calls."""
    rows = {name: [] for name in ("first", "eager", "background", "waiting", "foreground", "compiled")}

    def new():
        function, x = make()
        function(x)  # warms the caches, which the compilation before has emptied
        return make()

    for _ in range(REPEAT):
        function, x = new()
        rows["first"].append(timed(function, x))
        rows["eager"].append(min(timed(function, x) for _ in range(5)))
        function, x = new()
        fast = dlc.compile(function, background=True)
        rows["background"].append(timed(fast, x))
        rows["waiting"].append(timed(fast, x))
        dlc.compiler.wait_for_background()
        fast(x)
        rows["compiled"].append(min(timed(fast, x) for _ in range(5)))
        function, x = new()
        rows["foreground"].append(timed(dlc.compile(function), x))
    return {name: min(times) for name, times in rows.items()}


def main():
    print("best of new functions, ms       eager: later   first   background: first (of eager's first)   while waiting")
    for name, make in PROGRAMS.items():
        t = {name: seconds * 1e3 for name, seconds in measure(make).items()}
        print(
            f"{name:32} {t['eager']:11.2f} {t['first']:7.2f}   {t['background']:16.2f} "
            f"({t['background'] / t['first']:5.2f}x)   {t['waiting']:22.2f}"
            f"   not in the background: {t['foreground']:.2f}   compiled: {t['compiled']:.2f}"
        )


if __name__ == "__main__":
    main()
