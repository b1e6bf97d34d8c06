"""Loops written in Python: compiled once whatever the number of steps, equal to the unrolled and the eager program."""

import dlc
import pytest


def cell(x, h, c, wx, wh, b):
    g = x @ wx + h @ wh + b
    i, f, o, n = g.chunk(4, 1)
    c = dlc.sigmoid(f) * c + dlc.sigmoid(i) * dlc.tanh(n)
    return dlc.sigmoid(o) * dlc.tanh(c), c


def lstm(x, wx, wh, b):
    h = dlc.zeros(x.shape[1], wh.shape[0])
    c = dlc.zeros(x.shape[1], wh.shape[0])
    outs = []
    for t in range(x.shape[0]):
        h, c = cell(x[t], h, c, wx, wh, b)
        outs.append(h)
    return dlc.stack(outs), h, c


def train_step(x, wx, wh, b):
    for p in (wx, wh, b):
        p.grad = None
    y, h, c = lstm(x, wx, wh, b)
    loss = (y * y).mean() + h.sum()
    loss.backward()
    return loss.detach(), wx.grad, wh.grad, b.grad


def lstm_inputs(steps, batch=3, features=5, hidden=6, grad=False):
    dlc.manual_seed(steps)
    params = [dlc.randn(features, 4 * hidden) * 0.3, dlc.randn(hidden, 4 * hidden) * 0.3, dlc.randn(4 * hidden) * 0.1]
    for p in params:
        p.requires_grad_(grad)
    return dlc.randn(steps, batch, features), *params


def close(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert dlc.allclose(a, b, rtol=1e-5, atol=1e-6), (a - b).abs().max()


def compilations(f):
    before = dlc.compile_stats()
    f()
    after = dlc.compile_stats()
    return {
        k: after[k] - before[k] for k in ("compilations", "llvm_compilations", "cache_hits", "kernels", "fallbacks")
    }


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 17, 64])
def test_lstm_equals_eager(steps):
    f = dlc.compile(lstm)
    inputs = lstm_inputs(steps)
    for _ in range(3):
        close(f(*inputs), lstm(*inputs))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 17, 40])
def test_gradients_equal_eager(steps):
    f = dlc.compile(train_step)
    inputs = lstm_inputs(steps, grad=True)
    want = train_step(*inputs)
    for _ in range(3):
        close(f(*inputs), want)


def test_twenty_lengths_take_two_compilations():
    f = dlc.compile(lstm)
    stats = compilations(lambda: [f(*lstm_inputs(n)) for n in range(3, 23)])
    assert stats["compilations"] <= 2 and stats["fallbacks"] == 0
    close(f(*lstm_inputs(50)), lstm(*lstm_inputs(50)))


def test_twenty_lengths_of_a_training_step_take_two_compilations():
    f = dlc.compile(train_step)
    stats = compilations(lambda: [f(*lstm_inputs(n, grad=True)) for n in range(5, 25)])
    assert stats["compilations"] <= 2 and stats["fallbacks"] == 0
    want = train_step(*lstm_inputs(31, grad=True))
    close(f(*lstm_inputs(31, grad=True)), want)


def test_what_is_compiled_does_not_grow_with_the_steps():
    counts = []
    for steps in (10, 200):
        f, inputs = dlc.compile(lambda *a: train_step(*a)), lstm_inputs(steps, grad=True)
        stats = compilations(lambda f=f, inputs=inputs: f(*inputs))
        counts.append((stats["llvm_compilations"] + stats["cache_hits"], stats["kernels"]))
    assert counts[0] == counts[1]
