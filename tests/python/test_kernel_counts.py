"""How many kernels a normalization or loss costs: at most two forward and two backward, and nothing left to eager steps."""

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest

CASES = {
    "softmax": lambda x, w, b, i: dlc.softmax(x, -1),
    "softmax over rows": lambda x, w, b, i: dlc.softmax(x, 0),
    "log_softmax": lambda x, w, b, i: dlc.log_softmax(x, -1),
    "layer_norm": lambda x, w, b, i: F.layer_norm(x, (x.shape[-1],), w, b),
    "cross_entropy": lambda x, w, b, i: F.cross_entropy(x, i),
}


def operands():
    rng = np.random.default_rng(0)
    x, w, b = (dlc.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((64, 96), (96,), (96,)))
    return x, w, b, dlc.from_numpy(rng.integers(0, 96, 64))


def plan_of(function, *args):
    """(result, how the counters of plans moved) of one compiled call."""
    before = dlc.compile_stats()
    result = dlc.compile(function)(*args)
    after = dlc.compile_stats()
    return result, {
        k: after[k] - before[k] for k in ("kernels", "library_calls", "other_steps", "fallbacks", "compilations")
    }


@pytest.mark.parametrize("name", CASES)
def test_forward_takes_at_most_two_kernels(name):
    x, w, b, i = operands()

    def f(x):
        return CASES[name](x * 2 + 1, w, b, i) * 3

    result, plan = plan_of(f, x)
    np.testing.assert_allclose(result.numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6)
    assert plan["compilations"] == 1
    assert plan["kernels"] <= 2
    assert plan["other_steps"] == plan["library_calls"] == plan["fallbacks"] == 0


@pytest.mark.parametrize("name", CASES)
def test_backward_takes_at_most_two_more(name):
    x, w, b, i = operands()
    leaves = [t.requires_grad_() for t in ((x, w, b) if name == "layer_norm" else (x,))]
    g = dlc.ones_like(CASES[name](x, w, b, i).detach()) * 0.5

    def f():
        y = CASES[name](x, w, b, i)
        return y.detach(), *dlc.autograd.grad(y, leaves, g)

    results, plan = plan_of(f)
    for got, want in zip(results, f()):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    assert plan["compilations"] == 1
    assert plan["kernels"] <= 4
    assert plan["other_steps"] == plan["library_calls"] == plan["fallbacks"] == 0
