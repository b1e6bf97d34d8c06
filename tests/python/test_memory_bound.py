"""Groups bound by memory or by long scalar functions: compiled code gives what eager gives, at any size and layout."""

import dlc
import numpy as np
import pytest

LONG = ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "log", "log1p", "erf")


def same_bits(a, b):
    a, b = a.numpy(), b.numpy()
    assert a.shape == b.shape and a.dtype == b.dtype
    both_nan = np.isnan(a) & np.isnan(b)
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | both_nan).all())


@pytest.mark.parametrize("name", LONG)
def test_long_functions_have_the_bits_of_eager(name):
    patterns = np.arange(0, 2**32, 200003, dtype=np.uint64).astype(np.uint32)
    x = dlc.tensor(patterns.view(np.float32))
    f = getattr(dlc, name)

    def once(x):
        return (f(x + 0.0) * 1.0) + 0.0

    def chain(x):  # long enough to be split into loops over tiles
        return f(f(f(f(x))))

    for g in (once, chain):
        assert same_bits(g(x), dlc.compile(g)(x))


def chain_and_sum(x):
    y = dlc.tanh(dlc.log1p(dlc.exp(dlc.sin(x))))
    return y, (y - 0.5).sum(-1), dlc.sigmoid(y) * dlc.tanh(y)


@pytest.mark.parametrize("columns", [*range(0, 41, 3), 511, 512, 513, 1024, 1500])
def test_tiles_of_any_size(columns):
    data = np.random.default_rng(columns).standard_normal((3, 2 * columns)).astype(np.float32)
    x = dlc.tensor(data)
    compiled = dlc.compile(chain_and_sum)
    for view in (x, x[:, ::2], x.t()):
        want, got = chain_and_sum(view), compiled(view)
        assert same_bits(want[0], got[0]) and same_bits(want[2], got[2])
        np.testing.assert_allclose(want[1].numpy(), got[1].numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_do_not_depend_on_threads(threads):
    x = dlc.tensor(np.random.default_rng(0).standard_normal((64, 3000)).astype(np.float32))
    before = dlc.get_num_threads()
    try:
        dlc.set_num_threads(threads)
        got = dlc.compile(chain_and_sum)(x)
    finally:
        dlc.set_num_threads(before)
    want = chain_and_sum(x)
    assert same_bits(want[0], got[0])
