"""Matrix products as generated kernels: what joins them, what stays apart, and that results are those of eager code."""

import math

import dlc
import numpy as np
import pytest
from dlc import nn
from dlc._C import _derived_stats as derived
from dlc.nn import functional as F


@pytest.fixture(autouse=True)
def wherever_possible():
    before = dlc._C._get_knobs()["contract"][0]
    dlc._C._set_knob("contract", 1)
    dlc.reset_compile_stats()
    yield
    dlc._C._set_knob("contract", before)


def counts():
    s = dlc.compile_stats()
    return s["kernels"], s["library_calls"], s["other_steps"]


def close(got, want, k, dtype=np.float32):
    """Within the rounding of sums of `k` products in another order."""
    got, want = (np.array(t.detach().tolist(), np.float64) for t in (got, want))
    bound = 4 * math.sqrt(k + 1) * np.finfo(dtype).eps * (np.abs(want) + np.abs(want).max(initial=1))
    assert (np.abs(got - want) <= bound).all()


EPILOGUES = {
    "bias": lambda y, b, r: -(y + b),
    "relu": lambda y, b, r: F.relu(y + b),
    "gelu": lambda y, b, r: F.gelu(y + b),
    "gelu_tanh": lambda y, b, r: F.gelu(y + b, approximate="tanh"),
    "silu": lambda y, b, r: F.silu(y + b),
    "sigmoid": lambda y, b, r: dlc.sigmoid(y * 0.5),
    "tanh": lambda y, b, r: dlc.tanh(y + b) * 2,
    "residual": lambda y, b, r: r + (y + b),
    "scaled residual": lambda y, b, r: r + 0.1 * F.relu(y),
    "cast": lambda y, b, r: (y + b).to(dlc.float64),
    "column factor": lambda y, b, r: (y + b) * r[:, :1],
    "mask": lambda y, b, r: dlc.where(r > 0, y, -1.0),
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("m, k, n", [(1, 5, 7), (2, 64, 64), (13, 33, 50), (40, 384, 96)])
def test_epilogues_are_part_of_the_product(name, m, k, n):
    dlc.manual_seed(1)
    w, b, r = nn.Parameter(dlc.randn(k, n)), nn.Parameter(dlc.randn(n)), dlc.randn(m, n)
    x = dlc.randn(m, k)

    def f(x, r):
        return EPILOGUES[name](x @ w, b, r)

    compiled = dlc.compile(f)
    with dlc.no_grad():
        want, got = f(x, r), compiled(x, r)
        assert counts() == (1, 0, 0)
        close(got, want, k)
        close(compiled(x, r), want, k)


@pytest.mark.parametrize("layout", ["plain", "transposed x", "transposed w", "strided", "negative", "batched"])
def test_layouts(layout):
    dlc.manual_seed(2)
    x, w = dlc.randn(12, 40), dlc.randn(40, 30)
    f = dlc.compile(lambda x, w: dlc.relu(x @ w) + 1.0)
    if layout == "transposed x":
        x = dlc.randn(40, 12).t()
    elif layout == "transposed w":
        w = dlc.randn(30, 40).t()
    elif layout == "strided":
        x, w = dlc.randn(24, 80)[::2, ::2], dlc.randn(40, 61)[:, 1::2]
    elif layout == "negative":
        x, w = x.flip(0), w.flip(1)
    elif layout == "batched":
        x, w = dlc.randn(3, 12, 40), dlc.randn(3, 30, 40).transpose(1, 2)
    for _ in range(2):
        close(f(x, w), dlc.relu(x @ w) + 1.0, 40)
    assert counts() == (1, 0, 0)


@pytest.mark.parametrize("m", [0, 1, 2, 5])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 17])
def test_small_and_empty(m, k, n):
    w, b = nn.Parameter(dlc.ones(k, n)), nn.Parameter(dlc.ones(n))
    f = dlc.compile(lambda x: dlc.relu(x @ w + b))
    with dlc.no_grad():
        for _ in range(2):
            assert f(dlc.ones(m, k)).tolist() == [[k + 1.0] * n] * m


def test_special_values_reach_the_result():
    w = nn.Parameter(dlc.eye(4))
    x = dlc.tensor([[math.nan, 1.0, -1.0, 0.0], [math.inf, 0.0, 0.0, 0.0], [0.0, -math.inf, 0.0, 2.0]])
    f = dlc.compile(lambda x: dlc.relu(x @ w) + 1.0)
    with dlc.no_grad():
        np.testing.assert_array_equal(np.array(f(x).tolist()), np.array((dlc.relu(x @ w) + 1.0).tolist()))


def test_sizes_that_vary_use_one_packed_copy():
    w, b = nn.Parameter(dlc.randn(64, 80)), nn.Parameter(dlc.randn(80))
    f = dlc.compile(lambda x: F.gelu(x @ w + b))
    before = derived()
    with dlc.no_grad():
        for m in (8, 3, 21, 1, 40, 2):
            x = dlc.randn(m, 64)
            close(f(x), F.gelu(x @ w + b), 64)
    after = derived()
    assert after["runs"] - before["runs"] == 1
    assert after["values"] - before["values"] == 1


def test_a_row_reduction_is_a_kernel_of_its_own():
    w = nn.Parameter(dlc.randn(32, 48))
    f = dlc.compile(lambda x: dlc.softmax(x @ w * 0.25, 1))
    x = dlc.randn(8, 32)
    with dlc.no_grad():
        close(f(x), dlc.softmax(x @ w * 0.25, 1), 32)
    assert counts() == (2, 0, 0)


def test_what_is_read_twice_is_written_once():
    w = nn.Parameter(dlc.randn(32, 48))

    def f(x):
        h = x @ w + 1.0
        return h, dlc.relu(h)

    compiled = dlc.compile(f)
    x = dlc.randn(8, 32)
    with dlc.no_grad():
        for got, want in zip(compiled(x), f(x), strict=True):
            close(got, want, 32)
    assert counts() == (1, 0, 0)


def test_a_product_is_no_operand_of_its_own_kernel():
    a, b = nn.Parameter(dlc.randn(32, 32)), nn.Parameter(dlc.randn(32, 32))

    def f(x):
        h = dlc.relu(x @ a)
        return h + h @ b

    compiled = dlc.compile(f)
    x = dlc.randn(8, 32)
    with dlc.no_grad():
        close(compiled(x), f(x), 1024)
    assert counts() == (2, 0, 0)


def test_columns_of_a_joined_projection():
    """The bias is added once, by the product, though only parts of the sum are used."""
    layer = nn.Linear(48, 3 * 48)

    def f(x):
        q, k, v = layer(x).view(2, 9, 3, 4, 12).permute(2, 0, 3, 1, 4).unbind(0)
        return dlc.softmax(q @ k.transpose(-1, -2), -1) @ v

    compiled = dlc.compile(f)
    x = dlc.randn(2, 9, 48)
    with dlc.no_grad():
        close(compiled(x), f(x), 4 * 48)
    assert counts()[1] == 0


def test_integers_and_halves_stay_exact():
    for dtype in (dlc.int32, dlc.int64, dlc.float16, dlc.bfloat16, dlc.float64):
        w = nn.Parameter(dlc.arange(12).reshape(3, 4).to(dtype), requires_grad=False)
        f = dlc.compile(lambda x, w=w: (x @ w) * 2 + x[:, :1])
        x = dlc.arange(6).reshape(2, 3).to(dtype)
        with dlc.no_grad():
            assert f(x).tolist() == ((x @ w) * 2 + x[:, :1]).tolist()


def test_threads_give_the_same_bits():
    w = nn.Parameter(dlc.randn(200, 130))
    f = dlc.compile(lambda x: F.gelu(x @ w) + 1.0)
    x = dlc.randn(70, 200)
    threads = dlc.get_num_threads()
    with dlc.no_grad():
        results = []
        for n in (1, 2):
            dlc.set_num_threads(n)
            results += [f(x).tolist() for _ in range(30)]
    dlc.set_num_threads(threads)
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("steps", [4])
def test_training_with_generated_products(steps):
    def make():
        dlc.manual_seed(5)
        m = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 3))
        return m, dlc.optim.SGD(m.parameters(), lr=0.1)

    def step(m, o, x):
        o.zero_grad()
        loss = m(x).square().mean()
        loss.backward()
        o.step()
        return loss

    (a, oa), (b, ob) = make(), make()
    compiled = dlc.compile(lambda x: step(b, ob, x))
    x = dlc.randn(16, 20)
    for _ in range(steps):
        close(compiled(x), step(a, oa, x), 64)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        close(q, p, 256)


def test_the_knob_turns_them_off():
    dlc._C._set_knob("contract", 0)
    w = nn.Parameter(dlc.randn(32, 48))
    f = dlc.compile(lambda x: dlc.relu(x @ w) + 1.0)
    with dlc.no_grad():
        f(dlc.randn(8, 32))
    assert counts() == (1, 1, 0)


def test_narrow_weights_are_packed_as_they_are():
    for dtype in (dlc.bfloat16, dlc.float16):
        layer = nn.Linear(96, 128)
        layer.register_buffer("narrow", layer.weight.detach().to(dtype))
        f = dlc.compile(lambda x, layer=layer: F.relu(F.linear(x, layer.narrow.to(dlc.float32), layer.bias)))
        for rows in (1, 5, 40):
            x = dlc.randn(rows, 96)
            with dlc.no_grad():
                bytes_before = derived()["bytes"]
                want = F.relu(F.linear(x, layer.narrow.to(dlc.float32), layer.bias))
                close(f(x), want, 96)
                close(f(x), want, 96)
            if rows == 1:
                assert 2 * 96 * 128 <= derived()["bytes"] - bytes_before < 4 * 96 * 128
        assert counts()[1] == 0
