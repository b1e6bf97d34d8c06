"""Compiled convolutions: packed weights, folded normalisation and what follows, channels-last regions, gradients."""

import itertools

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn


def random(*shape, seed=0):
    return dlc.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def check(function, *args, atol=2e-4):
    """The result of compiled code, which must be eager's, and how the counters moved."""
    before = dlc.compile_stats()
    compiled = dlc.compile(function)
    with dlc.no_grad():
        got, want = compiled(*args), function(*args)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=atol)
    assert got.stride() == want.stride()
    after = dlc.compile_stats()
    assert after["fallbacks"] == before["fallbacks"]
    return {k: after[k] - before[k] for k in ("kernels", "library_calls", "other_steps", "compilations")}


SHAPES = [
    # batch, in, height, width, out, kernel, stride, padding, dilation, groups
    (2, 3, 33, 30, 16, 3, 2, 1, 1, 1),
    (1, 3, 40, 41, 20, 7, 2, 3, 1, 1),
    (2, 8, 17, 19, 24, (3, 1), 1, (1, 0), 1, 1),
    (1, 16, 24, 25, 40, 1, 1, 0, 1, 1),
    (1, 16, 48, 49, 40, 1, 2, 0, 1, 1),
    (2, 5, 30, 31, 7, 3, 1, 2, 2, 1),
    (1, 16, 28, 28, 16, 3, 1, 1, 1, 16),
    (1, 40, 28, 28, 40, 5, 1, 2, 1, 40),
    (2, 8, 24, 24, 12, 3, 1, 1, 1, 2),
    (1, 4, 30, 30, 8, 3, 1, 1, 1, 4),  # two channels a group: an eager step
    (9, 1, 12, 12, 6, 3, 1, 1, 1, 1),
    (600, 3, 1, 1, 5, 1, 1, 0, 1, 1),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_two_convolutions_with_an_activation_between(shape):
    b, c, h, w, out, kernel, stride, padding, dilation, groups = shape
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    x, weight, bias = random(b, c, h, w), random(out, c // groups, kh, kw, seed=1), random(out, seed=2)
    second = random(9, out, 1, 1, seed=3)

    def f(x, weight, bias, second):
        y = F.relu(F.conv2d(x, weight, bias, stride, padding, dilation, groups))
        return F.conv2d(y, second) * 2

    check(f, x, weight, bias, second, atol=1e-3)


@pytest.mark.parametrize("activation", ["relu", "hardswish", "hardsigmoid", "relu6", "silu", "none"])
@pytest.mark.parametrize("bias", [False, True])
def test_normalisation_sum_and_activation_are_part_of_the_convolution(activation, bias):
    conv, norm = nn.Conv2d(8, 16, 3, padding=1, bias=bias), nn.BatchNorm2d(16)
    with dlc.no_grad():
        for i, p in enumerate((norm.weight, norm.bias, norm.running_mean, norm.running_var)):
            p.copy_(random(16, seed=i).abs() + 0.5)
    norm.eval()
    end = getattr(F, activation) if activation != "none" else lambda y: y

    def f(x, r):
        return end(norm(conv(x)) + r)

    plan = check(f, random(2, 8, 20, 20), random(2, 16, 20, 20, seed=5))
    assert plan["library_calls"] == 1  # packing is no part of a call


def test_a_sum_of_two_convolutions():
    a, b = random(16, 8, 3, 3, seed=1), random(16, 8, 1, 1, seed=2)
    check(lambda x: F.relu(F.conv2d(x, a, padding=1) + F.conv2d(x, b)), random(1, 8, 30, 30))


def test_a_convolution_added_to_itself():
    w = random(16, 8, 3, 3, seed=1)

    def f(x):
        y = F.conv2d(x, w, padding=1)
        return F.relu(y + y)

    check(f, random(1, 8, 30, 30))


def test_a_value_that_is_used_twice_stays():
    w, v = random(8, 8, 3, 3, seed=1), random(8, 8, 3, 3, seed=2)

    def f(x):
        y = F.conv2d(x, w, padding=1)
        z = F.conv2d(F.relu(y), v, padding=1)
        return z + y, y

    with dlc.no_grad():
        got, want = dlc.compile(f)(random(1, 8, 30, 30)), f(random(1, 8, 30, 30))
    for g, e in zip(got, want):
        np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=1e-4, atol=2e-4)
        assert g.stride() == e.stride()


def test_changed_statistics_and_weights_are_seen():
    conv, norm = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16).eval()
    f, x = dlc.compile(lambda x: norm(conv(x))), random(1, 3, 32, 32)
    with dlc.no_grad():
        for change in (
            lambda: None,
            lambda: norm.running_mean.add_(1),
            lambda: conv.weight.mul_(2),
            lambda: norm.weight.mul_(3),
        ):
            change()
            np.testing.assert_allclose(f(x).numpy(), norm(conv(x)).numpy(), rtol=1e-4, atol=1e-4)


def test_training_mode_is_not_folded():
    conv, norm = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)
    f, x = dlc.compile(lambda x: norm(conv(x))), random(2, 3, 32, 32)
    with dlc.no_grad():
        f(x)
        mean = norm.running_mean.numpy().copy()
        assert np.abs(mean).max() > 0
        norm.running_mean.zero_()
        norm.running_var.fill_(1)
        norm(conv(x))
    np.testing.assert_allclose(mean, norm.running_mean.numpy(), rtol=1e-4, atol=1e-6)


def test_eval_leaves_the_statistics_alone():
    norm = nn.BatchNorm2d(4).eval()
    versions = norm.running_mean._version, norm.running_var._version
    norm(random(2, 4, 3, 3))
    dlc.compile(norm)(random(2, 4, 3, 3))
    assert (norm.running_mean._version, norm.running_var._version) == versions


@pytest.mark.parametrize("size", [(13, 14), (1, 1), (7, 7)])
def test_pooling_in_channels_last(size):
    w = random(19, 3, 1, 1, seed=1)
    x = random(200 if size == (1, 1) else 9, 3, *size)

    def f(x):
        y = F.conv2d(x, w)
        y = F.max_pool2d(y, 3, 2, 1) if size != (1, 1) else y
        return F.adaptive_avg_pool2d(y, (1, 1)) * 2

    check(f, x)


def test_pooling_keeps_nan():
    w = random(16, 3, 1, 1, seed=1)
    x = random(4, 3, 16, 16)
    x[1, 0, 5, 6] = float("nan")
    x[2, 1, 3, 3] = float("inf")
    check(lambda x: F.max_pool2d(F.relu(F.conv2d(x, w)), 2) + 1, x)


def test_squeeze_and_excite():
    a, b, c = random(32, 16, 1, 1, seed=1), random(8, 32, 1, 1, seed=2), random(32, 8, 1, 1, seed=3)

    def f(x):
        y = F.hardswish(F.conv2d(x, a))
        s = F.adaptive_avg_pool2d(y, (1, 1))
        return y * F.hardsigmoid(F.conv2d(F.relu(F.conv2d(s, b)), c))

    check(f, random(1, 16, 28, 28))


def test_results_are_row_major():
    w = random(16, 3, 3, 3, seed=1)
    with dlc.no_grad():
        y = dlc.compile(lambda x: F.relu(F.conv2d(x, w)))(random(1, 3, 32, 32))
    assert y.is_contiguous()


def step_of(model, optimizer):
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def test_training_steps_are_eagers():
    def make():
        dlc.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 9, 10),
        )  # fmt: skip
        return model, dlc.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

    x, y = random(8, 1, 12, 12), dlc.tensor(np.arange(8) % 10)
    (a, first), (b, second) = make(), make()
    eager, compiled = step_of(a, first), dlc.compile(step_of(b, second))
    for _ in range(4):
        np.testing.assert_allclose(compiled(x, y).numpy(), eager(x, y).numpy(), rtol=1e-4, atol=1e-5)
    for p, q in zip(a.state_dict().values(), b.state_dict().values()):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("stride, padding, dilation", list(itertools.product((1, 2), (0, 1, 2), (1, 2))))
def test_gradients_are_eagers(stride, padding, dilation):
    w, v = random(16, 3, 3, 3, seed=1).requires_grad_(), random(16, 16, 3, 3, seed=2).requires_grad_()
    x = random(4, 3, 18, 17).requires_grad_()

    def f(x, w, v):
        y = F.relu(F.conv2d(x, w, None, stride, padding, dilation))
        z = F.conv2d(y, v, None, 1, 1)
        return dlc.autograd.grad((z * z).sum(), (x, w, v))

    for got, want in zip(dlc.compile(f)(x, w, v), f(x, w, v)):
        scale = np.abs(want.numpy()).max()
        np.testing.assert_allclose(got.numpy() / scale, want.numpy() / scale, rtol=1e-3, atol=1e-5)
        assert got.stride() == want.stride()


def test_sizes_that_vary():
    conv, norm = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16).eval()
    v = random(24, 16, 3, 3, seed=2)

    @dlc.compile
    def f(x):
        y = F.max_pool2d(F.relu(norm(conv(x))), 3, 2, 1)
        return F.adaptive_avg_pool2d(F.relu(F.conv2d(y, v, padding=1) * 2), (1, 1))

    with dlc.no_grad():
        for batch, height, width in ((4, 64, 48), (5, 64, 48), (3, 70, 51), (2, 33, 90), (7, 65, 64)):
            x = random(batch, 3, height, width)
            want = F.max_pool2d(F.relu(norm(conv(x))), 3, 2, 1)
            want = F.adaptive_avg_pool2d(F.relu(F.conv2d(want, v, padding=1) * 2), (1, 1))
            np.testing.assert_allclose(f(x).numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    w, v = random(24, 3, 3, 3, seed=1), random(24, 24, 3, 3, seed=2)

    def f(x):
        return F.conv2d(F.relu(F.conv2d(x, w, padding=1)), v, stride=2)

    x, before = random(2, 3, 40, 41), dlc.get_num_threads()
    try:
        with dlc.no_grad():
            dlc.set_num_threads(1)
            want = dlc.compile(f)(x)
            dlc.set_num_threads(threads)
            assert dlc.equal(dlc.compile(f)(x), want)
    finally:
        dlc.set_num_threads(before)
