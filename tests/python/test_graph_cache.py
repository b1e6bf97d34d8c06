"""The persistent cache of whole compiled graphs: a second process runs no pass, and nothing that it does differs."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = r"""
import json, sys
import dlc as torch
import dlc.nn.functional as F
from dlc import nn

def inference():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
    f = torch.compile(net)
    with torch.no_grad():
        return [f(torch.randn(n, 24)) for n in (4, 7, 9, 1, 7)]

def training():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return [step(torch.randn(6, 12), torch.arange(6) % 3) for _ in range(3)] + list(net.parameters())

def shapes():
    # Sizes decide: what was compiled for one answer must not serve the other.
    @torch.compile(dynamic=True)
    def f(x, y, k):
        a = x[:, 1:].contiguous() * 2
        b = a.reshape(-1)[: x.shape[0] * 2] + k
        if x.shape[0] > 5:
            b = b - 1
        return torch.cat([b, y.sum(0) * k]), x.mean(1), x.expand(3, *x.shape).sum(0)
    out = []
    for n, m, k in ((3, 4, 1.5), (4, 6, 2.5), (8, 3, 0.5), (8, 5, 3), (3, 3, True)):
        out += f(torch.arange(float(n * m)).reshape(n, m), torch.ones(2, m), k)
    return out

def state():
    x = torch.arange(12.0).reshape(3, 4)
    views = [x[0], x[:, 1]]
    @torch.compile
    def f(a, b):
        a.mul_(2)
        b.add_(a[0] + 1)
        return (a + a.flip(0)).cumsum(0), torch.rand(3), torch.randperm(4)
    out = []
    for _ in range(3):
        out += f(views[0], views[1])
    return [*out, x]

def guards():
    # Every fact that compiling rests on, also those that only passes found.
    @torch.compile(dynamic=True)
    def f(x, y):
        a = (x + y).softmax(-1).transpose(0, 1).reshape(-1)
        return a[: y.shape[0]] * y[:, 0], x.sum(1) + y.sum(1)
    f(torch.ones(4, 6), torch.ones(4, 6))
    f(torch.ones(5, 7), torch.ones(5, 7))
    return [torch.tensor(list("".join(sorted(json.loads(f.explain_json())[0]["guards"])).encode()))]

def index():
    @torch.compile
    def f(t, i):
        return F.embedding(i, t * 2) + 1
    out = [f(torch.ones(5, 3), torch.tensor([0, 4]))]
    try:
        f(torch.ones(5, 3), torch.tensor([0, 5]))
    except Exception as e:
        out.append(torch.tensor([len(type(e).__name__)]))
    return out

results = [[t.tolist() for t in part()] for part in (inference, training, shapes, state, guards, index)]
print(json.dumps({"results": repr(results), "stats": torch.compile_stats()}))
"""


def run(cache, program=PROGRAM, **env):
    names = {k: v for k, v in os.environ.items() if not k.startswith("DLC_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**names, "DLC_CACHE_DIR": str(cache), "DLC_LOGS": "compile_time", **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["results"], answer["stats"], done.stderr


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_a_warm_process_runs_no_pass_and_gives_the_same(cache):
    results, cold, log = run(cache)
    assert cold["llvm_compilations"] > 5
    assert "fused" in log and "LLVM codegen" in log
    again, warm, log = run(cache)
    assert again == results
    assert warm["llvm_compilations"] == 0
    assert warm["fallbacks"] == cold["fallbacks"] == 0
    for name in ("compilations", "kernels", "library_calls", "other_steps", "hits", "replays"):
        assert warm[name] == cold[name], name
    for phase in ("MLIR context", "import", "simplified", "fused", "scheduled", "kernel text", "LLVM codegen"):
        assert phase not in log
    assert "graphs from the cache" in log


def test_results_are_those_without_a_cache(cache):
    results, _, _ = run(cache)
    plain, stats, log = run(cache, DLC_CACHE_LIMIT_MB="0")
    assert plain == results
    assert stats["cache_hits"] < stats["llvm_compilations"]
    assert "graph store" not in log


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign mode"])
def test_damaged_entries_are_replaced(cache, damage):
    results, cold, _ = run(cache)
    for file in pathlib.Path(cache).glob("*.o"):
        content = file.read_bytes()
        if damage == "cut":
            file.write_bytes(content[: len(content) // 2])
        elif damage == "flip":
            at = len(content) // 3
            file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        elif damage == "empty":
            file.write_bytes(b"")
        else:
            file.chmod(0o666)
    again, stats, _ = run(cache)
    assert again == results
    assert stats["llvm_compilations"] == cold["llvm_compilations"]
    again, stats, _ = run(cache)
    assert again == results and stats["llvm_compilations"] == 0


def test_kernels_serve_graphs_that_are_gone(cache):
    """Entries of graphs and of kernels go on their own."""
    results, cold, _ = run(cache)
    for file in pathlib.Path(cache).glob("*.o"):
        if b"dlc graph" in file.read_bytes():
            file.unlink()
    again, stats, log = run(cache)
    assert again == results and stats["llvm_compilations"] == 0 and "fused" in log


def test_what_decides_the_code_is_part_of_the_key(cache):
    results, _, _ = run(cache)
    for env in ({"DLC_MODE": "no_fuse"}, {"DLC_FUSION_FUEL": "1"}):
        _, stats, log = run(cache, **env)
        assert "graphs from the cache" not in log
        assert stats["kernels"] > 0


def test_two_processes_share_a_cold_cache(cache):
    names = {k: v for k, v in os.environ.items() if not k.startswith("DLC_")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**names, "DLC_CACHE_DIR": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [p.communicate(timeout=300) for p in both]
    assert [p.returncode for p in both] == [0, 0], outputs
    _, warm, _ = run(cache)
    assert warm["llvm_compilations"] == 0


TWINS = r"""
import json, sys
import dlc as torch

def scale(x, by=2):
    return [x * by * i for i in range(2)] + [x[..., ::1] + (lambda y: y)(1)]

class Base:
    def f(self, x):
        return x + 1

class Derived(Base):
    def f(self, x):
        def inner(y):
            return y * 3
        return super().f(inner(x))

@torch.compile
def step(x):
    return sum(scale(x)) + Derived().f(x)

for n in (3, 4, 5):
    x = torch.ones(n)
    out = step(x)
print(json.dumps({"results": [out.tolist(), "dlc._capture.rewrite" in sys.modules], "stats": torch.compile_stats()}))
"""


def test_twins_of_functions_are_kept(cache, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(TWINS)
    runner = f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')"
    (values, parsed), cold, _ = run(cache, runner)
    assert parsed and cold["replays"] >= 1
    (again, parsed), warm, _ = run(cache, runner)
    assert not parsed
    assert again == values
    assert warm["replays"] == cold["replays"] and warm["captures"] == cold["captures"]
    # Another program at the same place is another code object.
    file.write_text(TWINS.replace("y * 3", "y * 4"))
    (other, parsed), _, _ = run(cache, runner)
    assert parsed and other != values
    # Only lines differ: the twin's errors name the new ones, so it is made anew.
    file.write_text("\n" + TWINS)
    (again, parsed), _, _ = run(cache, runner)
    assert parsed and again == values
