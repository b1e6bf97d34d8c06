"""What follows from parameters alone is computed when they change, and shared."""

import gc
import os
import subprocess
import sys
import threading

import dlc
import numpy as np
import pytest
from dlc import nn
from dlc._C import _derived_stats as stats


class Joined(nn.Module):
    """Two products with one input; the joined weights follow from the parameters."""

    def __init__(self, n=96):
        super().__init__()
        self.a = nn.Parameter(dlc.randn(n, n))
        self.b = nn.Parameter(dlc.randn(n, n), requires_grad=False)
        self.register_buffer("scale", dlc.rand(n) + 1)

    def forward(self, x):
        w = dlc.cat([self.a, self.b], 1)
        return dlc.relu(x @ w)[:, : w.shape[0]] * self.scale


def expected(m, x):
    a, b, s = (np.array(t.detach().tolist(), np.float32) for t in (m.a, m.b, m.scale))
    y = np.maximum(np.array(x.tolist(), np.float32) @ np.concatenate([a, b], 1), 0)[:, : a.shape[0]]
    return y * s


def check(f, m, x, runs):
    """The result is right, and all (`runs` 1) or none (0) of what follows from the parameters was computed for it: the
    joined weights, and the same packed."""
    before = stats()["runs"]
    with dlc.no_grad():
        y = f(x)
    assert np.allclose(np.array(y.tolist()), expected(m, x), rtol=1e-4, atol=1e-4)
    assert stats()["runs"] - before == 2 * runs


@pytest.fixture
def joined():
    dlc.manual_seed(3)
    m = Joined()
    return m, dlc.compile(m), dlc.randn(8, 96)


def test_once_for_many_calls(joined):
    m, f, x = joined
    check(f, m, x, 1)
    for _ in range(100):
        check(f, m, x, 0)


def test_other_batch_sizes_share_the_value(joined):
    m, f, x = joined
    check(f, m, x, 1)
    bytes_before = stats()["bytes"]
    for n in (3, 5, 9, 17):
        check(f, m, dlc.randn(n, 96), 0)
    assert stats()["bytes"] == bytes_before


def test_changes_are_seen(joined):
    m, f, x = joined
    check(f, m, x, 1)
    with dlc.no_grad():
        m.a.add_(1.0)
    check(f, m, x, 1)
    m.b.data = dlc.randn(96, 96)
    check(f, m, x, 1)
    m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()})
    check(f, m, x, 1)
    check(f, m, x, 0)


def test_writes_through_numpy_are_seen(joined):
    m, f, x = joined
    check(f, m, x, 1)
    view = m.b.numpy()
    view[0, 0] = 41.0
    for k in range(3):
        view[:, k] = k
        with dlc.no_grad():
            y = f(x)
        assert np.allclose(np.array(y.tolist()), expected(m, x), rtol=1e-4, atol=1e-4)


def test_optimizer_steps_are_seen(joined):
    m, f, x = joined
    check(f, m, x, 1)
    optimizer = dlc.optim.SGD(m.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = m(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled_step = dlc.compile(step)
    for run in (step, compiled_step, compiled_step, compiled_step):
        run(x)
        check(f, m, x, 1)
        check(f, m, x, 0)


def test_training_and_evaluation_in_one_call(joined):
    m, f, x = joined
    optimizer = dlc.optim.SGD([m.a], lr=0.1)

    @dlc.compile
    def both(x):
        optimizer.zero_grad()
        m(x).sum().backward()
        optimizer.step()
        with dlc.no_grad():
            return m(x)

    for _ in range(4):
        y = both(x)
        assert np.allclose(np.array(y.tolist()), expected(m, x), rtol=1e-3, atol=1e-3)
        check(f, m, x, 1)


def test_one_function_for_many_modules():
    @dlc.compile
    def run(m, x):
        return m(x)

    modules = [Joined(64) for _ in range(5)]
    x = dlc.randn(4, 64)
    for runs in (1, 0, 0):
        for m in modules:
            check(lambda x, m=m: run(m, x), m, x, runs)


def test_memory_is_freed_with_the_parameters_and_with_the_code():
    gc.collect()
    before = stats()
    compiled = [dlc.compile(lambda m, x: m(x))]
    x = dlc.randn(4, 64)
    for _ in range(3):
        m = Joined(64)
        check(lambda x, m=m: compiled[0](m, x), m, x, 1)
    assert stats()["values"] >= before["values"] + 1
    del m
    gc.collect()
    assert stats()["bytes"] == before["bytes"]
    m = Joined(64)
    check(lambda x: compiled[0](m, x), m, x, 1)
    assert before["bytes"] + 64 * 128 * 4 <= stats()["bytes"] <= before["bytes"] + 64 * 192 * 4
    compiled.clear()
    gc.collect()
    assert stats()["bytes"] == before["bytes"]


def test_threads():
    m = Joined(64)
    f = dlc.compile(m)
    x = dlc.randn(4, 64)
    check(f, m, x, 1)
    want, wrong = expected(m, x), []

    def work():
        with dlc.no_grad():
            for _ in range(200):
                if not np.allclose(np.array(f(x).tolist()), want, rtol=1e-4, atol=1e-4):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_with_gradients_nothing_is_kept(joined):
    m, f, x = joined
    before = stats()["runs"]
    f(x).sum().backward()
    assert stats()["runs"] == before
    assert m.a.grad is not None


PROGRAM = """
import sys, dlc
sys.path.insert(0, {folder!r})
from test_state_part import Joined, check, stats
dlc.manual_seed(3)
m = Joined()
f = dlc.compile(m)
x = dlc.randn(8, 96)
check(f, m, x, 1)
check(f, m, x, 0)
with dlc.no_grad():
    m.a.mul_(2.0)
check(f, m, x, 1)
s = dlc.compile_stats()
print(s["llvm_compilations"])
"""


def test_archived_plans_have_their_derived_values(tmp_path):
    environment = {**os.environ, "DLC_CACHE_DIR": str(tmp_path)}
    program = PROGRAM.format(folder=os.path.dirname(__file__))
    counts = [
        int(subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout)
        for _ in range(2)
    ]
    assert counts[0] > 0 and counts[1] == 0
