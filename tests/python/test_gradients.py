"""Gradients across the border of compiled functions: compiled forward, eager loss and backward."""

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn

CALLS = 4  # traced, captured, replayed


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dlc.from_numpy(values).clone().requires_grad_()


def same(got, want):
    assert (got is None) == (want is None)
    if got is not None:
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-5, atol=1e-6)


def compare(f, make, use):
    """`use(f, inputs)` gives a list of tensors: equal for eager and compiled, at each of several calls."""
    compiled = dlc.compile(f)
    for k in range(CALLS):
        want, got = use(f, make(k)), use(compiled, make(k))
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    return compiled


def gradients(f, inputs):
    out = f(*inputs)
    (out * out).sum().backward()
    return [out] + [x.grad for x in inputs]


def mlp(x, w, b, v):
    return F.gelu(x @ w + b) @ v


def mlp_inputs(k):
    return leaf(5, 4, seed=k), leaf(4, 8, seed=1), leaf(8, seed=2), leaf(8, 3, seed=3)


def test_eager_loss():
    before = dlc.compile_stats()["replays"]
    compare(mlp, mlp_inputs, gradients)
    assert dlc.compile_stats()["replays"] > before


def test_replayed_numbers_and_sizes():
    def f(x, w, scale):
        return ((x @ w) * scale).sigmoid() / x.shape[0]

    compiled = dlc.compile(f)
    before = dlc.compile_stats()["replays"]
    for k, n in enumerate((3, 7, 5, 7, 9, 4, 3, 8)):
        inputs = (leaf(n, 4, seed=k), leaf(4, 6, seed=1))
        again = tuple(x.detach().clone().requires_grad_() for x in inputs)
        scale = 0.5 + k
        f(*inputs, scale).square().sum().backward()
        compiled(*again, scale).square().sum().backward()
        for x, y in zip(inputs, again):
            same(y.grad, x.grad)
    assert dlc.compile_stats()["replays"] > before


def test_attention_and_norm():
    def f(x, w, b):
        h = F.layer_norm(x, (8,), w, b)
        return F.scaled_dot_product_attention(h, h, h, is_causal=True) + x

    compare(f, lambda k: (leaf(2, 5, 8, seed=k), leaf(8, seed=1), leaf(8, seed=2)), gradients)


def test_other_sizes():
    def f(x, w):
        return ((x @ w).relu() / x.shape[0]).mean(0)

    compiled = dlc.compile(f)
    for n in (3, 7, 2, 9, 1, 5):
        want, got = (
            gradients(f, (leaf(n, 4), leaf(4, 6, seed=1))),
            gradients(compiled, (leaf(n, 4), leaf(4, 6, seed=1))),
        )
        for g, w in zip(got, want):
            same(g, w)


def test_retain_graph_and_partial_results():
    def f(x, y):
        h = x.exp()
        return h * y, (h + y).sin(), h.detach()

    def use(f, inputs):
        x, y = inputs
        a, b, c = f(x, y)
        assert not c.requires_grad
        a.sum().backward(retain_graph=True)
        first = x.grad.clone()
        b.sum().backward(retain_graph=True)
        (a.sum() + b.sum()).backward()
        with pytest.raises(RuntimeError, match="retain_graph=True"):
            a.sum().backward()
        return [first, x.grad, y.grad]

    compare(f, lambda k: (leaf(4, seed=k), leaf(4, seed=1)), use)


def test_gradients_of_gradients():
    def f(x, w):
        return (x * w).tanh() * x

    def use(f, inputs):
        x, w = inputs
        (g,) = dlc.autograd.grad(f(x, w).sum(), x, create_graph=True)
        (g * g).sum().backward()
        return [g, x.grad, w.grad]

    compare(f, lambda k: (leaf(5, seed=k), leaf(5, seed=1)), use)


def test_hooks_on_both_sides():
    def f(x):
        return (x * 3).sin()

    def use(f, inputs):
        (x,) = inputs
        seen = []
        x.register_hook(lambda g: seen.append(g.clone()))
        y = f(x)
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        return [x.grad] + seen

    compare(f, lambda k: (leaf(4, seed=k),), use)


def test_a_hook_inside():
    def f(x):
        h = x * 3
        h.register_hook(lambda g: g * 10)
        return h.sin()

    compare(f, lambda k: (leaf(4, seed=k),), gradients)


def test_flipped_and_frozen():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    compiled = dlc.compile(model)
    x = leaf(5, 3)
    for k in range(6):
        frozen = k % 3 == 1
        model[0].weight.requires_grad_(not frozen)
        for p in model.parameters():
            p.grad = None
        model(x).sum().backward()
        want = [p.grad for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        compiled(x).sum().backward()
        for p, w in zip(model.parameters(), want):
            same(p.grad, w)


def test_accumulation_over_calls():
    w = leaf(4, 4, seed=9)
    f = dlc.compile(lambda x: (x @ w).relu().sum())
    total = np.zeros((4, 4), np.float32)
    for k in range(CALLS):
        x = leaf(3, 4, seed=k)
        f(x).backward()
        (g,) = dlc.autograd.grad((x @ w).relu().sum(), w)
        total += g.numpy()
        np.testing.assert_allclose(w.grad.numpy(), total, rtol=1e-5, atol=1e-6)


def test_no_grad_inside_and_new_leaves():
    def f(x):
        with dlc.no_grad():
            scale = x.abs().max()
        y = (x / scale).detach().requires_grad_()
        return x / scale, y * 2

    def use(f, inputs):
        a, b = f(*inputs)
        assert a.requires_grad and b.requires_grad
        a.sum().backward()
        return [inputs[0].grad]

    compare(f, lambda k: (leaf(4, seed=k),), use)


def test_changed_before_the_backward():
    def f(x, w):
        return x * w, x + w

    compiled = dlc.compile(f)
    for k in range(CALLS):
        for call in (f, compiled):
            x, w = leaf(4, seed=k), leaf(4, seed=1)
            product, _ = call(x, w)
            with dlc.no_grad():
                w.add_(1)
            with pytest.raises(RuntimeError, match="changed by an in-place op"):
                product.sum().backward()


def test_a_legal_change_before_the_backward():
    def f(x, y):
        return (x + y).relu() * 3

    def use(f, inputs):
        x, y = inputs
        out = f(x, y)
        with dlc.no_grad():
            y.neg_()
            out.mul_(2)
        out.sum().backward()
        return [x.grad]

    compare(f, lambda k: (leaf(6, seed=k), leaf(6, seed=1).detach()), use)


def test_dropout():
    def f(x):
        return F.dropout(x * x, 0.5, True)

    compiled = dlc.compile(f)
    for k in range(CALLS):
        x = leaf(64, seed=k)
        out = compiled(x)
        out.sum().backward()
        same(x.grad * x.detach(), out * 2)  # the mask of the forward


def test_results_changed_in_place():
    def f(x):
        return x * 2

    def use(f, inputs):
        y = f(*inputs)
        y.mul_(inputs[0].detach())
        y[1:].add_(y[:-1].detach())
        y.sum().backward()
        return [inputs[0].grad, y]

    compare(f, lambda k: (leaf(5, seed=k),), use)


def test_one_result_a_view():
    def f(x):
        h = x.exp()
        return h[:, 1:].t()

    compare(f, lambda k: (leaf(3, 4, seed=k),), gradients)


def test_what_is_saved_is_less():
    def f(x, w, v):
        return F.gelu(F.gelu(x @ w) @ w) @ v

    inputs = (leaf(512, 256), leaf(256, 256, seed=1), leaf(256, 8, seed=2))

    def held(call):
        out = call(*inputs)
        before = dlc.memory_stats()["allocated"]
        del out
        return before - dlc.memory_stats()["allocated"]

    compiled = dlc.compile(f)
    for _ in range(CALLS):
        compiled(*inputs)
    # The tape keeps each gelu's operand and result, the plan one of them.
    assert held(compiled) <= 0.6 * held(f)
