"""Every op of the table: executors and layouts against NumPy, and gradients against finite differences in float64."""

import dlc
import numpy as np
import pytest
from executors import EXECUTORS
from samples import (
    DTYPES,
    FLOATS,
    LAYOUTS,
    MODE,
    SAMPLES,
    TOLERANCE,
    arguments,
    expected,
    function_of,
    numpy_of,
    to_tensor,
    walk,
)

# What PyTorch refuses too.
REFUSED = {("div", 1, "bool"), ("div", 2, "bool")}
# A bound of -1 becomes 255 in uint8, as in PyTorch; NumPy would compare it as -1.
WRAPPED_BOUNDS = {("clamp", 0, "u8"), ("hardtanh", 0, "u8")}
# Reading depends on strides: other layouts raise or mean other elements.
CONTIGUOUS_ONLY = {"view", "view_as", "as_strided"}
# Operands that no gradient is defined for: class weights and running statistics.
NOT_DIFFERENTIABLE = {
    "nll_loss": ["weight"],
    "cross_entropy": ["weight"],
    "batch_norm": ["running_mean", "running_var"],
}
KNOWN_DTYPE = {"arith": None, "to_bool": dlc.bool, "index": dlc.int64}


def _id(row):
    return f"{row['op']}{row['index']}"


def flatten(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def run(row, args, kwargs, executor):
    """Calls the op through an executor; tensors are the function's arguments, all else is part of the program."""
    tensors = []

    def collect(v):
        if isinstance(v, dlc.Tensor):
            tensors.append(v)
            return len(tensors) - 1, "tensor"
        if isinstance(v, (list, tuple)) and any(isinstance(x, dlc.Tensor) for x in v):
            return [collect(x) for x in v], "list"
        return v, "value"

    template = [collect(a) for a in args], {k: collect(v) for k, v in kwargs.items()}

    def fill(spec, given):
        value, kind = spec
        return given[value] if kind == "tensor" else [fill(v, given) for v in value] if kind == "list" else value

    op = function_of(row)

    def program(*given):
        return op(*(fill(s, given) for s in template[0]), **{k: fill(s, given) for k, s in template[1].items()})

    return flatten(EXECUTORS[executor](program)(*tensors))


def compare(got, want, dtype, what):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape, f"{what}: shape {tuple(got.shape)}, not {want.shape}"
    values = numpy_of(got)
    if not got.is_floating_point():
        np.testing.assert_array_equal(values, want.astype(values.dtype), err_msg=what)
        return
    tolerance = TOLERANCE[dtype if dtype in FLOATS else "f32"]
    np.testing.assert_allclose(
        values, want.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=what
    )


def check(row, dtype, layout, executor, length=None):
    args, kwargs = arguments(row, dtype, length)
    args, kwargs = (
        walk(args, lambda d: to_tensor(d, dtype, layout)),
        walk(kwargs, lambda d: to_tensor(d, dtype, layout)),
    )
    before = [a.clone() if isinstance(a, dlc.Tensor) else a for a in args]
    if (row["op"], row["index"], dtype) in REFUSED:
        with pytest.raises((RuntimeError, NotImplementedError)):
            run(row, args, kwargs, executor)
        return
    got = run(row, args, kwargs, executor)
    want = flatten(expected(row, before, kwargs, dtype, any(g.is_floating_point() for g in got)))
    if (row["op"], row["index"], dtype) in WRAPPED_BOUNDS:
        want = [np.ones_like(want[0])]
    assert len(got) >= len(want)
    for k, (g, w) in enumerate(zip(got, want, strict=False)):
        compare(g, w, dtype, f"{row['op']}({row['args']}) result {k}, {dtype}, {layout}, {executor}")
    known = KNOWN_DTYPE.get(row["promotion"])
    if known is not None:
        assert got[0].dtype == known
    elif dtype in FLOATS and row["promotion"] != "none" and "dtype" not in row["args"] and got[0].is_floating_point():
        assert got[0].dtype == DTYPES[dtype][0]


def dtypes_of(row):
    if not any(f"{c}(" in row["args"] for c in "SPFD"):
        return ["f32"]
    return [d for d in row["dtypes"] if d in DTYPES]


def cases():
    quick = ("f32", "i32", "bool") if MODE == "quick" else DTYPES
    return [pytest.param(row, d, id=f"{_id(row)}-{d}") for row in SAMPLES for d in dtypes_of(row) if d in quick]


@pytest.mark.parametrize("row, dtype", cases())
def test_eager(row, dtype):
    several = (dtype in ("f32", "i64") or MODE == "full") and row["op"] not in CONTIGUOUS_ONLY
    for layout in LAYOUTS if several else LAYOUTS[:1]:
        check(row, dtype, layout, "eager")


@pytest.mark.parametrize("row", [pytest.param(r, id=_id(r)) for r in SAMPLES if r["kind"] == "elementwise"])
def test_lengths(row):
    dtypes = dtypes_of(row) if MODE == "full" else [d for d in dtypes_of(row) if d in ("f32", "u8", "i16")]
    for dtype in dtypes:
        for length in (0, *range(1, 41)) if MODE != "quick" else (0, 1, 7, 33):
            check(row, dtype, "contiguous", "eager", length)


def gradient_rows():
    def floats(row):
        return "f64" in row["dtypes"] and any(f"{c}(" in row["args"] for c in "SPFD")

    return [pytest.param(row, id=_id(row)) for row in SAMPLES if row["differentiable"] and floats(row)]


@pytest.mark.parametrize("row", gradient_rows())
def test_gradient(row):
    """Central differences of a random weighting of the results, for each element of each floating argument."""
    args, kwargs = arguments(row, "f64")
    args, kwargs = walk(args, lambda d: to_tensor(d, "f64")), walk(kwargs, lambda d: to_tensor(d, "f64"))
    op = function_of(row)
    leaves = []

    def collect(v):
        if isinstance(v, dlc.Tensor) and v.is_floating_point():
            leaves.append(v)
        elif isinstance(v, (list, tuple)):
            for x in v:
                collect(x)

    collect(list(args) + list(kwargs.values()))
    fixed = NOT_DIFFERENTIABLE.get(row["op"], ())
    skipped = [a for name, a in zip(row["params"], args, strict=False) if name in fixed and isinstance(a, dlc.Tensor)]
    leaves = [t for t in leaves if not any(t is s for s in skipped)]
    kept = [(s, s.clone()) for s in skipped]

    def results():
        for s, value in kept:
            s.copy_(value)
        return [r for r in flatten(op(*args, **kwargs)) if r.is_floating_point()]

    shapes = results()
    rng = np.random.default_rng(0)
    weights = [dlc.tensor(rng.uniform(0.5, 1.5, tuple(r.shape))) for r in shapes]

    def loss():
        return sum(((r * w).sum() for r, w in zip(results(), weights, strict=True)), dlc.tensor(0.0, dtype=dlc.float64))

    for t in leaves:
        t.requires_grad_(True)
    total = loss()
    if not total.requires_grad:
        pytest.fail(f"{row['op']}: its result does not require grad")
    grads = dlc.autograd.grad(total, leaves, allow_unused=True)
    for t in leaves:
        t.requires_grad_(False)
    step = 1e-6
    for t, g in zip(leaves, grads, strict=True):
        numeric = np.zeros(tuple(t.shape))
        flat = t.reshape(-1) if t.is_contiguous() else None
        assert flat is not None
        for k, where in enumerate(np.ndindex(*t.shape)):
            value = flat[k].item()
            flat[k] = value + step
            above = loss().item()
            flat[k] = value - step
            below = loss().item()
            flat[k] = value
            numeric[where] = (above - below) / (2 * step)
        analytic = np.zeros(tuple(t.shape)) if g is None else g.numpy()
        np.testing.assert_allclose(analytic, numeric, rtol=1e-5, atol=2e-6, err_msg=f"{row['op']}({row['args']})")


def compiled_rows():
    dtypes = {"quick": ("f32",), "sample": ("f32", "i32"), "full": tuple(DTYPES)}[MODE]
    return [pytest.param(row, d, id=f"{_id(row)}-{d}") for row in SAMPLES for d in dtypes_of(row) if d in dtypes]


@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name != "eager"])
@pytest.mark.parametrize("row, dtype", compiled_rows())
def test_compiled(row, dtype, executor):
    for layout in LAYOUTS[:1] if row["op"] in CONTIGUOUS_ONLY or MODE != "full" else LAYOUTS:
        check(row, dtype, layout, executor)
