"""Attention that a program writes out runs as the one-pass op, forward and backward, with the same values."""

import math

import dlc
import numpy as np
import pytest
from dlc import nn

HEADS, WIDTH = 4, 32


class Attention(nn.Module):
    """As small GPTs have it: one projection, a mask from a buffer, softmax written out."""

    def __init__(self, form):
        super().__init__()
        dlc.manual_seed(0)
        self.form = form
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("tril", dlc.tril(dlc.ones(64, 64)).view(1, 1, 64, 64))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(x).split(c, 2))
        if self.form == "divided":
            scores = q @ k.transpose(-2, -1) / math.sqrt(c // HEADS)
        else:
            scores = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(c // HEADS))
        if self.form == "masked":
            scores = scores.masked_fill(self.tril[:, :, :t, :t] == 0, float("-inf"))
        elif self.form == "where":
            scores = dlc.where(self.tril[0, 0, :t, :t] > 0, scores, -1e9)
        elif self.form == "added":
            scores = scores + (self.tril[0, 0, :t, :t] - 1) * 3.0
        weights = dlc.softmax(scores, -1)
        y = self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
        return (y, weights) if self.form == "kept" else y


FORMS = ["plain", "divided", "masked", "where", "added"]


def ops_of(function, *args):
    """How many steps of the compiled function are attention, and its gradient."""
    plan = "".join(str(g["plan"]) for g in dlc.explain(function)(*args).graphs)
    return plan.count("[attention]"), plan.count("[attention_backward]")


@pytest.mark.parametrize("form", FORMS)
def test_forward(form):
    model = Attention(form)
    compiled = dlc.compile(model)
    with dlc.no_grad():
        for length in (5, 16, 33, 64):
            x = dlc.randn(2, length, WIDTH)
            np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=0, atol=2e-6)
        assert ops_of(model, x) == (1, 0)


@pytest.mark.parametrize("form", FORMS)
def test_training_step(form):
    def step(model, x):
        loss = model(x).square().sum()
        loss.backward()
        grads = [p.grad.clone() for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        return grads

    model = Attention(form)
    compiled = dlc.compile(step)
    for length in (5, 16, 33):
        x = dlc.randn(2, length, WIDTH)
        for got, want in zip(compiled(model, x), step(model, x)):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-4)
    assert ops_of(step, model, x) == (1, 1)


def test_weights_that_are_returned_stay():
    model = Attention("kept")
    x = dlc.randn(2, 7, WIDTH)
    with dlc.no_grad():
        y, weights = dlc.compile(model)(x)
        want, exact = model(x)
        assert ops_of(model, x) == (0, 0)
    np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=0, atol=2e-6)
    np.testing.assert_allclose(weights.numpy(), exact.numpy(), rtol=0, atol=2e-6)


def test_a_row_that_sees_nothing_is_not_a_number():
    def f(q, k, v, hidden):
        return dlc.softmax((q @ k.transpose(-2, -1)).masked_fill(hidden, -float("inf")), -1) @ v

    q, k, v = (dlc.randn(2, 3, 4) for _ in range(3))
    hidden = dlc.tensor([[False, True, False], [True, True, True], [False, False, True]])
    got, want = dlc.compile(f)(q, k, v, hidden), f(q, k, v, hidden)
    assert dlc.isnan(got[:, 1]).all() and not dlc.isnan(got[:, ::2]).any()
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=0, atol=2e-6)


@pytest.mark.parametrize("fill", [-1e3, -1e5, -1e9])
def test_gradients_of_rows_hidden_by_a_finite_number(fill):
    """The logarithm of the sum of such a row has lost the sum to rounding."""

    def f(q, k, v, hidden, w):
        scores = (q @ k.transpose(-2, -1)).masked_fill(hidden, fill)
        ((dlc.softmax(scores, -1) @ v) * w).sum().backward()

    hidden = dlc.zeros(2, 2, 6, 6).bool()
    hidden[:, :, 1] = True
    hidden[:, :, 3, 2:] = True
    w, tensors = dlc.randn(2, 2, 6, 4), [dlc.randn(2, 2, 6, 4).requires_grad_() for _ in range(3)]
    same = [t.detach().clone().requires_grad_() for t in tensors]
    dlc.compile(f)(*tensors, hidden, w)
    f(*same, hidden, w)
    for got, want in zip(tensors, same, strict=True):
        assert dlc.allclose(got.grad, want.grad, rtol=1e-5, atol=1e-5)
