"""Attention in one pass: against float64 over shapes, masks, strides and shared heads; its gradient; its memory."""

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest

# batch, heads, key heads, queries, keys, features, value features
SHAPES = [
    (1, 1, 1, 5, 1, 1, 1),
    (1, 2, 2, 3, 5, 4, 6),
    (2, 4, 2, 7, 7, 8, 8),
    (1, 2, 2, 1, 5, 3, 3),
    (1, 4, 1, 1, 700, 64, 64),
    (1, 1, 1, 40, 300, 32, 32),
    (1, 2, 1, 65, 513, 33, 17),
    (2, 3, 3, 128, 128, 32, 32),
    (1, 2, 2, 33, 520, 256, 256),
    (3, 2, 2, 2, 9, 70, 70),
]
MASKS = ["none", "causal", "bool", "row", "float"]


def reference(q, k, v, mask=None, causal=False, scale=None):
    """In float64; a query that sees nothing gives zeros."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        mask = np.tril(np.ones(s.shape[-2:], bool))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def operands(shape, mask, seed=0):
    b, h, hk, tq, tk, d, dv = shape
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal(s).astype("f4") for s in ((b, h, tq, d), (b, hk, tk, d), (b, hk, tk, dv)))
    m = None
    if mask == "bool":
        m = rng.random((b, 1, tq, tk)) < 0.6
    elif mask == "row":
        m = rng.random((tq, 1)) < 0.6
    elif mask == "float":
        m = rng.standard_normal((h, tq, tk)).astype("f4")
        m[:, :, tk // 2] = -np.inf if tk > 1 else 0
    return q, k, v, m


def attend(q, k, v, mask=None, causal=False, **kwargs):
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, enable_gqa=q.shape[1] != k.shape[1], **kwargs)


def optional(m):
    return None if m is None else dlc.tensor(m)


def laid_out(x, order):
    """The same elements with the memory order `order`."""
    t = dlc.tensor(np.ascontiguousarray(x.transpose(order)))
    return t.permute([order.index(i) for i in range(4)])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, mask):
    q, k, v, m = operands(shape, mask)
    want = reference(q, k, v, m, mask == "causal")
    for orders in [((0, 1, 2, 3),) * 3, ((0, 2, 1, 3),) * 3, ((3, 0, 2, 1), (0, 2, 1, 3), (0, 3, 2, 1))]:
        tensors = [laid_out(x, o) for x, o in zip((q, k, v), orders)]
        got = attend(*tensors, optional(m), mask == "causal").numpy()
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype, atol", [("float64", 1e-13), ("float16", 2e-3), ("bfloat16", 2e-2)])
def test_dtypes(dtype, atol):
    q, k, v, m = operands((2, 4, 2, 37, 70, 40, 24), "bool")
    t = [dlc.tensor(x).to(getattr(dlc, dtype)) for x in (q, k, v)]
    exact = [x.to(dlc.float64).numpy() for x in t]
    got = attend(*t, dlc.tensor(m)).to(dlc.float64).numpy()
    np.testing.assert_allclose(got, reference(*exact, m), rtol=0, atol=atol)


@pytest.mark.parametrize("queries", range(0, 41, 3))
@pytest.mark.parametrize("causal", [False, True])
def test_every_length(queries, causal):
    for keys in [0, 1, 2, 15, 16, 17, 31, 32, 33, 40]:
        q, k, v, _ = operands((1, 2, 2, queries, keys, 5, 7), "none", keys)
        want = reference(q, k, v, None, causal) if keys else np.zeros((1, 2, queries, 7))
        got = attend(*(dlc.tensor(x) for x in (q, k, v)), None, causal).numpy()
        assert got.shape == (1, 2, queries, 7)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)


def test_rank_two_and_three():
    q, k, v, _ = operands((3, 1, 1, 4, 6, 8, 8), "none")
    want = reference(q, k, v)[:, 0]
    t = [dlc.tensor(x[:, 0]) for x in (q, k, v)]
    np.testing.assert_allclose(F.scaled_dot_product_attention(*t).numpy(), want, rtol=0, atol=2e-6)
    got = F.scaled_dot_product_attention(*(x[1] for x in t)).numpy()
    np.testing.assert_allclose(got, want[1], rtol=0, atol=2e-6)


def test_broadcast_batch_and_heads():
    q, k, v, _ = operands((2, 4, 4, 3, 5, 8, 8), "none")
    t = [dlc.tensor(x) for x in (q, k, v)]
    want = reference(q, np.repeat(k[:1, :1], 2, 0), np.repeat(v[:1, :1], 2, 0))
    got = F.scaled_dot_product_attention(t[0], t[1][:1, :1], t[2][:1, :1]).numpy()
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)
    want = reference(np.repeat(q[:, :1], 4, 1), k, v)
    got = F.scaled_dot_product_attention(t[0][:, :1], t[1], t[2]).numpy()
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)


def test_rows_that_see_nothing_are_zero():
    q, k, v, _ = operands((1, 1, 1, 2, 3, 4, 4), "none")
    mask = np.array([[True, False, True], [False] * 3])
    for m in (mask, np.where(mask, 0, -np.inf).astype("f4")):
        tensors = [dlc.tensor(x).requires_grad_() for x in (q, k, v)]
        out = attend(*tensors, dlc.tensor(m))
        assert (out[0, 0, 1] == 0).all()
        out.sum().backward()
        assert (tensors[0].grad[0, 0, 1] == 0).all()
        assert all(dlc.isfinite(t.grad).all() for t in tensors)


def test_not_finite_operands():
    """As softmax(...) @ v over all keys gives them: a NaN in a value meets every query that multiplies it, even by 0."""
    q, k, v, _ = operands((1, 1, 1, 300, 300, 8, 8), "none")
    tril = np.tril(np.ones((300, 300), bool))

    def check(q, k, v):
        t = [dlc.tensor(x) for x in (q, k, v)]
        got = attend(*t, None, True).numpy()
        s = (t[0] @ t[1].transpose(-1, -2)) * (1 / np.sqrt(8))
        want = (dlc.softmax(dlc.where(dlc.tensor(tril), s, -float("inf")), -1) @ t[2]).numpy()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)

    for at, which in [(290, 1), (290, 2), (10, 0), (10, 1), (10, 2)]:
        for value in (np.nan, np.inf, -np.inf):
            args = [q.copy(), k.copy(), v.copy()]
            args[which][0, 0, at, 3] = value
            check(*args)


def explicit(q, k, v, mask, causal):
    times = q.shape[1] // k.shape[1]

    def each(x):
        b, h, t, d = x.shape
        return x.unsqueeze(2).expand(b, h, times, t, d).reshape(b, h * times, t, d)

    s = q @ each(k).transpose(-1, -2) * (1 / np.sqrt(q.shape[-1]))
    if causal:
        mask = dlc.tensor(np.tril(np.ones(tuple(s.shape)[-2:], bool)))
    if mask is not None:
        s = dlc.where(mask, s, -float("inf")) if mask.dtype == dlc.bool else s + mask
    return dlc.softmax(s, -1) @ each(v)


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients(shape, mask):
    """Against those of the explicit form, in float64."""
    arrays = operands(shape, mask)
    if mask == "bool":
        arrays[3][..., 0] = True  # the explicit form gives NaN where nothing is seen
    results = []
    for f in (attend, explicit):
        t = [dlc.tensor(x).to(dlc.float64).requires_grad_() for x in arrays[:3]]
        m = optional(arrays[3])
        if mask == "float":
            m = m.to(dlc.float64).requires_grad_()
            t.append(m)
        out = f(*t[:3], m, mask == "causal")
        weights = dlc.tensor(np.random.default_rng(1).standard_normal(tuple(out.shape)))
        (out * weights).sum().backward()
        results.append([out.detach().numpy()] + [x.grad.numpy() for x in t])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)


def test_gradient_in_float32():
    arrays = operands((2, 4, 2, 70, 300, 33, 32), "bool")
    arrays[3][..., 0] = True
    results = []
    for dtype, f in ((dlc.float32, attend), (dlc.float64, explicit)):
        t = [dlc.tensor(x).to(dtype).requires_grad_() for x in arrays[:3]]
        f(*t, dlc.tensor(arrays[3]), False).sum().backward()
        results.append([x.grad.to(dlc.float64).numpy() for x in t])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)


def test_second_gradients():
    arrays = operands((1, 2, 1, 3, 5, 4, 4), "none")
    results = []
    for f in (attend, explicit):
        t = [dlc.tensor(x).to(dlc.float64).requires_grad_() for x in arrays[:3]]
        out = f(*t, None, True)
        first = dlc.autograd.grad((out * out).sum(), t, create_graph=True)
        sum((g * g).sum() for g in first).backward()
        results.append([x.grad.numpy() for x in t])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 2, 2, 300, 300, 32, 32), (1, 8, 2, 1, 1000, 64, 64), (1, 1, 1, 130, 40, 16, 16)])
def test_any_number_of_threads_gives_the_same_bits(shape):
    q, k, v, _ = operands(shape, "none")
    results, before = [], dlc.get_num_threads()
    try:
        for threads in (1, 2, 3):
            dlc.set_num_threads(threads)
            t = [dlc.tensor(x).requires_grad_() for x in (q, k, v)]
            out = attend(*t, None, True)
            out.sum().backward()
            results.append([out.detach().numpy()] + [x.grad.numpy() for x in t])
    finally:
        dlc.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mask", MASKS)
def test_compiled_over_lengths(mask):
    """One step of a plan for every length: no product, no softmax, no copy for the layout that the next layer wants."""

    def f(q, k, v, m):
        return attend(q, k, v, m, mask == "causal").transpose(1, 2).flatten(2)

    compiled, before = dlc.compile(f), dlc.compile_stats()
    for length in (5, 9, 31, 64, 65):
        q, k, v, m = operands((2, 3, 3, length, length, 8, 8), mask, length)
        t = [laid_out(x, (0, 2, 1, 3)) for x in (q, k, v)]
        np.testing.assert_array_equal(compiled(*t, optional(m)).numpy(), f(*t, optional(m)).numpy())
    after = dlc.compile_stats()
    moved = {k: after[k] - before[k] for k in ("kernels", "library_calls", "other_steps", "fallbacks", "compilations")}
    assert moved["compilations"] <= 2 and moved["other_steps"] == moved["compilations"]
    assert moved["kernels"] == moved["library_calls"] == moved["fallbacks"] == 0
