"""Compiled elementwise ops at every length from one symbolic compilation, and gradients recorded with their forward."""

import dlc
import numpy as np
import pytest
from samples import MODE, SAMPLES, arguments, expected, function_of, to_tensor, walk
from test_ops import NOT_DIFFERENTIABLE, WRAPPED_BOUNDS, compare, dtypes_of, flatten, gradient_rows


def _id(row):
    return f"{row['op']}{row['index']}"


def tensors_of(args):
    return [a for a in args if isinstance(a, dlc.Tensor)]


def program_of(row, args):
    """The op as a function of its tensor arguments, with neighbours that make the piece worth compiling."""
    op = function_of(row)
    where = [isinstance(a, dlc.Tensor) for a in args]
    rest = [None if w else a for w, a in zip(where, args, strict=True)]

    def program(beside, kwargs, *tensors):
        given = iter(tensors)
        result = op(*(next(given) if w else r for w, r in zip(where, rest, strict=True)), **kwargs)
        return result, (beside * 2 + 1).neg()

    return program


@pytest.mark.parametrize("row", [pytest.param(r, id=_id(r)) for r in SAMPLES if r["kind"] == "elementwise"])
def test_lengths(row):
    wanted = ("f32", "u8", "i16", "f16") if MODE == "full" else ("f32", "i16")
    for dtype in [d for d in dtypes_of(row) if d in wanted]:
        if (row["op"], row["index"], dtype) in WRAPPED_BOUNDS:
            continue
        compiled, before = None, dlc.compile_stats()
        for length in (*range(2, 41), 1, 0):
            args, kwargs = arguments(row, dtype, length)
            args = walk(args, lambda d: to_tensor(d, dtype))  # noqa: B023
            kwargs = walk(kwargs, lambda d: to_tensor(d, dtype))  # noqa: B023
            compiled = compiled or dlc.compile(program_of(row, args))
            got, _ = compiled(dlc.ones(5), kwargs, *tensors_of(args))
            want = flatten(expected(row, args, kwargs, dtype, got.is_floating_point()))
            compare(got, want[0], dtype, f"{row['op']}({row['args']}), {dtype}, length {length}")
        after = dlc.compile_stats()
        assert after["fallbacks"] == before["fallbacks"], "\n".join(e["text"] for e in compiled.events())
        # One for the first length, one for all; the lengths 1 and 0 may be programs of their own.
        assert after["compilations"] - before["compilations"] <= 4


@pytest.mark.parametrize("row", gradient_rows())
def test_gradient(row):
    """Loss and gradients inside of one compiled function against the same function run eagerly."""
    args, kwargs = arguments(row, "f64")
    args, kwargs = walk(args, lambda d: to_tensor(d, "f64")), walk(kwargs, lambda d: to_tensor(d, "f64"))
    op = function_of(row)
    fixed = NOT_DIFFERENTIABLE.get(row["op"], ())
    leaves = []

    def collect(v, name=None):
        if isinstance(v, dlc.Tensor) and v.is_floating_point() and name not in fixed:
            leaves.append(v.requires_grad_(True))
        elif isinstance(v, (list, tuple)):
            for x in v:
                collect(x)

    for name, a in zip(row["params"], args, strict=False):
        collect(a, name)
    for a in kwargs.values():
        collect(a)

    def step():
        results = [r for r in flatten(op(*args, **kwargs)) if r.is_floating_point()]
        loss = sum((r * r.detach().cos()).sum() for r in results)
        return loss, dlc.autograd.grad(loss, leaves, allow_unused=True)

    state = [
        (a, a.clone())
        for name, a in zip(row["params"], args, strict=False)
        if name in fixed and isinstance(a, dlc.Tensor)
    ]
    want_loss, want = step()
    before = dlc.compile_stats()
    compiled = dlc.compile(step)
    for _ in range(2):
        with dlc.no_grad():
            for tensor, value in state:
                tensor.copy_(value)
        loss, got = compiled()
        assert abs(loss.item() - want_loss.item()) <= 1e-9 * max(1.0, abs(want_loss.item()))
        for g, w in zip(got, want, strict=True):
            assert (g is None) == (w is None)
            if g is not None:
                np.testing.assert_allclose(
                    g.numpy(), w.numpy(), rtol=1e-9, atol=1e-11, err_msg=f"{row['op']}({row['args']})"
                )
    fallen = dlc.compile_stats()["fallbacks"] - before["fallbacks"]
    assert fallen == 0, "\n".join(e["text"] for e in compiled.events())
