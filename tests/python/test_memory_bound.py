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


@pytest.mark.parametrize("classes", [1, 7, 64, 1000])
def test_cross_entropy_reads_the_score_of_the_target(classes):
    """One element a row instead of a sum over a one-hot mask; NaN and infinities elsewhere in the row don't matter."""
    rng = np.random.default_rng(classes)
    x, y = rng.standard_normal((33, classes)).astype(np.float32), rng.integers(0, classes, 33)
    y[3] = -100
    f = dlc.compile(lambda x, y: dlc.nn.functional.cross_entropy(x, y, reduction="none") * 1.0)
    got = f(dlc.tensor(x), dlc.tensor(y)).numpy()
    picked = x[np.arange(33), np.maximum(y, 0)].astype(np.float64)
    want = np.log(np.exp(x.astype(np.float64)).sum(1)) - picked
    want[3] = 0
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    z = np.full((2, max(classes, 2)), -np.inf, np.float32)
    z[:, 1] = 2
    got = f(dlc.tensor(z), dlc.tensor(np.array([1, 0]))).numpy()
    assert got[0] == 0 and got[1] == np.inf
    with pytest.raises(Exception, match="target|index|out of"):
        f(dlc.tensor(x), dlc.tensor(np.full(33, classes)))


def test_one_hot_sum_at_any_index():
    x = dlc.tensor(np.random.default_rng(0).standard_normal((40, 9)).astype(np.float32))
    i = dlc.tensor(np.arange(-10, 30))

    def picked(x, i):
        hot = i.unsqueeze(1) == dlc.arange(x.shape[1])
        return dlc.where(hot, dlc.exp(x) * 2, 0.0).sum(1)

    assert same_bits(picked(x, i), dlc.compile(picked)(x, i))
    assert same_bits(picked(x[:, :0], i), dlc.compile(picked)(x[:, :0], i))


def training_step(zero_first):
    dlc.manual_seed(0)
    model = dlc.nn.Sequential(dlc.nn.Linear(20, 30), dlc.nn.ReLU(), dlc.nn.Linear(30, 3))
    optimizer = dlc.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, y):
        if zero_first:
            optimizer.zero_grad()
        loss = dlc.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if not zero_first:
            optimizer.zero_grad()
        return loss.detach()

    return model, step


@pytest.mark.parametrize("zero_first", [False, True])
def test_gradients_of_weights_are_row_major_and_stored_only_if_seen(zero_first):
    rng = np.random.default_rng(0)
    x, y = dlc.tensor(rng.standard_normal((8, 20)).astype(np.float32)), dlc.tensor(rng.integers(0, 3, 8))
    model, step = training_step(zero_first)
    want = [float(step(x, y)) for _ in range(4)]
    if zero_first:
        assert all(p.grad.is_contiguous() for p in model.parameters())
    model, step = training_step(zero_first)
    compiled = dlc.compile(step)
    assert [float(compiled(x, y)) for _ in range(4)] == pytest.approx(want, rel=1e-5)
    for p in model.parameters():
        assert (p.grad is None) == (not zero_first)
        assert p.grad is None or p.grad.is_contiguous()
    if not zero_first:  # one tensor leaves the call: the loss
        before = dlc.memory_stats()["allocated"]
        loss = compiled(x, y)
        assert dlc.memory_stats()["allocated"] - before <= 64, loss


REDUCED = {
    "all": (lambda x: (x * 2).sum(), (600, 512)),
    "all of a vector": (lambda x: (x + 1).mean(), (300000,)),
    "all, kept": (lambda x: dlc.amax(x, (0, 1), keepdim=True), (640, 512)),
    "few columns": (lambda x: (x - 1).mean(0), (16384, 16)),
    "few columns, kept": (lambda x: x.sum(0, keepdim=True) * 2, (12288, 24)),
    "outer dims": (lambda x: x.sum((0, 1)), (64, 96, 48)),
    "prime": (lambda x: x.sum(), (131101,)),
    "transposed": (lambda x: x.t().sum(0) + 1, (5, 60000)),
    "least": (lambda x: dlc.amin(x, 0), (4096, 64)),
    "integers": (lambda x: (x * 10).to(dlc.int32).sum(), (512, 512)),
}


@pytest.mark.parametrize("name", REDUCED)
def test_much_is_reduced_in_two_steps_whatever_the_threads(name):
    f, shape = REDUCED[name]
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = dlc.tensor(data)
    compiled = dlc.compile(f)
    results = []
    before = dlc.get_num_threads()
    try:
        for threads in (1, 2):
            dlc.set_num_threads(threads)
            results.append(compiled(x))
    finally:
        dlc.set_num_threads(before)
    want = f(dlc.tensor(data.astype(np.float64)))
    assert results[0].shape == want.shape
    assert (results[0].numpy() == results[1].numpy()).all()
    np.testing.assert_allclose(results[0].numpy(), want.numpy(), rtol=2e-5, atol=2e-4 * np.sqrt(data.size) / 100)


@pytest.mark.parametrize("columns", [*range(0, 41, 5), 64, 100, 1000])
@pytest.mark.parametrize("rows", [1, 7, 33])
def test_softmax_down_columns_is_one_kernel(rows, columns):
    x = dlc.tensor(np.random.default_rng(1).standard_normal((rows, columns, 3)).astype(np.float32))

    def f(x):
        return dlc.softmax(x * 2 + 1, 0) * 3

    before = dlc.compile_stats()["kernels"]
    got = dlc.compile(f)(x)
    assert dlc.compile_stats()["kernels"] - before == 1
    np.testing.assert_allclose(got.numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [dlc.optim.SGD, dlc.optim.Adam, dlc.optim.AdamW], ids=lambda m: m.__name__)
def test_a_warm_training_step_takes_no_memory_from_the_system(make):
    """One block for the values between steps of the plan and one for the loss, both found in the allocator's lists."""
    dlc.manual_seed(0)
    model = dlc.nn.Sequential(dlc.nn.Linear(64, 128), dlc.nn.LayerNorm(128), dlc.nn.GELU(), dlc.nn.Linear(128, 10))
    optimizer = make(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x, y = dlc.tensor(rng.standard_normal((32, 64)).astype(np.float32)), dlc.tensor(rng.integers(0, 10, 32))

    def step(x, y):
        loss = dlc.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        dlc.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    compiled = dlc.compile(step)
    for _ in range(5):
        loss = compiled(x, y)
    before = dlc.memory_stats()
    for _ in range(10):
        loss = compiled(x, y)
    after = dlc.memory_stats()
    assert after["system_allocations"] == before["system_allocations"]
    assert after["allocations"] - before["allocations"] <= 2 * 10
    assert after["allocated"] == before["allocated"] and np.isfinite(float(loss))


@pytest.mark.parametrize("threads", [1, 2])
def test_statistics_of_channels_that_lie_side_by_side(threads):
    """A convolution before makes the layout channels-last; one after keeps it."""
    dlc.manual_seed(0)
    nn = dlc.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 20, 3), nn.BatchNorm2d(20)
    )  # fmt: skip
    x = dlc.tensor(np.random.default_rng(0).standard_normal((8, 3, 28, 26)).astype(np.float32))

    def step(x):
        for p in model.parameters():
            p.grad = None
        y = (model(x) ** 2).mean()
        y.backward()
        return [y.detach()] + [p.grad for p in model.parameters()]

    start = {k: v.clone() for k, v in model.state_dict().items()}
    want = [t.numpy() for t in step(x)]
    statistics = model[1].running_var.numpy().copy()
    model.load_state_dict(start)
    before = dlc.get_num_threads()
    try:
        dlc.set_num_threads(threads)
        got = dlc.compile(step)(x)
    finally:
        dlc.set_num_threads(before)
    for a, b in zip(want, got):
        np.testing.assert_allclose(b.numpy(), a, rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(model[1].running_var.numpy(), statistics, rtol=1e-4)
