"""Calls of one compiled function over several sizes, with and without gradients of the argument: results, leaves,
gradients of parameters and buffers are those of the plain function, and calls are replayed."""

import dlc
import dlc.nn.functional as F
import pytest
from dlc import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        dlc.manual_seed(1)
        self.a = nn.Parameter(dlc.randn(4, 4))
        self.b = nn.Parameter(dlc.randn(4))
        self.linear = nn.Linear(4, 4)
        self.batch_norm = nn.BatchNorm1d(4)
        self.layer_norm = nn.LayerNorm(4)
        self.register_buffer("buffer", dlc.zeros(4))
        self.calls = 0


def batch_norm(m, x):
    return m.batch_norm(x)


def dropout(m, x):
    return F.dropout(m.linear(x), 0.5)


def write_to_a_fresh_tensor(m, x):
    z = dlc.zeros(x.shape)
    z[0] = m.b
    z[1] = m.a[0] * x[0]
    return z


def write_to_a_row(m, x):
    y = m.linear(x)
    y.t()[0].sub_(y.mean())
    return y


def write_through_a_flat_view(m, x):
    y = m.linear(x) * 2
    y.view(-1).add_(1)
    return y


def buffer_without_gradient(m, x):
    with dlc.no_grad():
        m.buffer.add_(x.mean(0))
    return m.linear(x) + m.buffer


def in_place_result(m, x):
    return m.linear(x) * m.buffer.clone().add_(m.b)


def detached_part(m, x):
    return m.linear(x) + m.linear(x).detach()


def part_without_gradient(m, x):
    with dlc.no_grad():
        y = m.linear(x)
    return y * m.b


def views_of_parameters(m, x):
    return m.a.view(-1)[:4] * x, m.a.t() @ x.t(), m.a[1]


def chunks(m, x):
    return dlc.cat(list(m.linear(x).chunk(2, 1)), 0)


def repeated(m, x):
    for _ in range(3):
        x = dlc.tanh(m.linear(x))
    return x


def nested_results(m, x):
    y = m.linear(x)
    return {"a": y, "b": [y + 1, y.sum()], "c": (m.a * 2, x)}


def sizes_as_numbers(m, x):
    return m.linear(x) * (1.0 / x.shape[0]) + m.linear(x).mean()


def normalised(m, x):
    return m.layer_norm(x).softmax(1).log()


def attention(m, x):
    return F.scaled_dot_product_attention(m.linear(x)[None], x[None], m.linear(x)[None])


def one_result_twice(m, x):
    y = m.linear(x)
    return y, y


def parameter_returned(m, x):
    return m.a, m.linear.weight * 2


def chosen_by_element(m, x):
    return dlc.where(x > 0, m.linear(x), m.b)


def indexed(m, x):
    return m.linear(x)[dlc.tensor([0, 1])] + m.a[:2]


def gradient_inside(m, x):
    (g,) = dlc.autograd.grad((m.linear(x) ** 2).sum(), [m.linear.weight])
    return m.linear(x) @ g


def expanded(m, x):
    return m.b.expand(x.shape[0], 4) * x, m.b.unsqueeze(0)


def counter(m, x):
    m.calls += 1
    return m.linear(x) * m.calls


def kept_in_the_module(m, x):
    m.last = m.linear(x)
    return m.last * 2


FUNCTIONS = [
    batch_norm,
    dropout,
    write_to_a_fresh_tensor,
    write_to_a_row,
    write_through_a_flat_view,
    buffer_without_gradient,
    in_place_result,
    detached_part,
    part_without_gradient,
    views_of_parameters,
    chunks,
    repeated,
    nested_results,
    sizes_as_numbers,
    normalised,
    attention,
    one_result_twice,
    parameter_returned,
    chosen_by_element,
    indexed,
    gradient_inside,
    expanded,
    counter,
    kept_in_the_module,
]


def flat(value):
    if isinstance(value, dlc.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [t for v in items for t in flat(v)]


def step(function, model, x, seed):
    """One call and a backward of all its results: everything that can be seen afterwards."""
    dlc.manual_seed(seed)
    out = flat(function(model, x))
    model.zero_grad(set_to_none=seed % 3 != 0)
    x.grad = None
    seen = [t.detach().clone() for t in out] + [(t.requires_grad, t.is_leaf) for t in out]
    wanted = [t for t in out if t.requires_grad]
    if wanted:
        sum((t * t).sum() * (i + 1) for i, t in enumerate(wanted)).backward()
    for t in [*model.parameters(), x]:
        seen.append(t.grad.clone() if t.grad is not None else None)
    return seen + [b.clone() for b in model.buffers()]


def same(a, b):
    if isinstance(a, dlc.Tensor):
        return isinstance(b, dlc.Tensor) and a.shape == b.shape and dlc.allclose(a, b, rtol=1e-4, atol=1e-5)
    return a == b


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_the_plain_function(function):
    compiled = dlc.compile(function)
    plain, other = Model(), Model()
    before = dlc.compile_stats()["replays"]
    for seed, n in enumerate((3, 3, 3, 5, 5, 6, 7, 2, 3, 3)):
        dlc.manual_seed(100 + seed)
        x = dlc.randn(n, 4)
        y = x.clone()
        if seed % 2 == 0:
            x.requires_grad_()
            y.requires_grad_()
        want, got = step(function, plain, x, seed), step(compiled, other, y, seed)
        assert len(want) == len(got)
        for a, b in zip(want, got):
            assert same(a, b)
    assert dlc.compile_stats()["replays"] - before >= 4, compiled.explain()
