"""Optimizers against the published update rules written out in NumPy, and their bookkeeping."""

import math

import dlc
import numpy as np
import pytest
from dlc import nn, optim


def steps(make, count=5, lr=None):
    """Parameter values after each of `count` steps with known gradients."""
    p = nn.Parameter(dlc.tensor([1.0, -2.0, 3.0]))
    optimizer = make([p])
    seen = []
    for k in range(count):
        if lr is not None:
            optimizer.param_groups[0]["lr"] = lr[k]
        p.grad = dlc.tensor(gradient(k).astype(np.float32))
        optimizer.step()
        seen.append(p.detach().numpy().copy())
    return seen


def gradient(k):
    return np.array([0.5, -1.0, 0.25]) * (k + 1)


def sgd(count, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    p, buffer = np.array([1.0, -2.0, 3.0]), None
    for k in range(count):
        g = (-gradient(k) if maximize else gradient(k)) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
        yield p


def adam(count, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
    p, m, v = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3)
    for k in range(count):
        rate = lr[k] if isinstance(lr, list) else lr
        g = gradient(k)
        if decoupled:
            p = p * (1 - rate * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        hat_m, hat_v = m / (1 - betas[0] ** (k + 1)), v / (1 - betas[1] ** (k + 1))
        p = p - rate * hat_m / (np.sqrt(hat_v) + eps)
        yield p


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.9, "nesterov": True},
        {"weight_decay": 0.1, "momentum": 0.5},
        {"maximize": True},
    ],
    ids=str,
)
def test_sgd(options):
    got = steps(lambda p: optim.SGD(p, lr=0.1, **options))
    for a, b in zip(got, sgd(5, 0.1, **options), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"betas": (0.8, 0.9), "eps": 1e-4}, {"weight_decay": 0.1}], ids=str)
def test_adam(options):
    got = steps(lambda p: optim.Adam(p, lr=0.1, **options))
    for a, b in zip(got, adam(5, 0.1, **options), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_adamw_and_changing_rate():
    rates = [0.1 * 0.9**k for k in range(5)]
    got = steps(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1), lr=rates)
    for a, b in zip(got, adam(5, rates, weight_decay=0.1, decoupled=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert optim.AdamW([nn.Parameter(dlc.ones(1))]).param_groups[0]["weight_decay"] == 1e-2


def test_state_is_made_at_construction():
    p = nn.Parameter(dlc.ones(2))
    optimizer = optim.Adam([p])
    assert set(optimizer.state[p]) == {"step", "exp_avg", "exp_avg_sq"} and isinstance(
        optimizer.state[p]["step"], dlc.Tensor
    )
    assert "momentum_buffer" in optim.SGD([p], momentum=0.9).state[p]


def test_parameters_without_gradient_do_not_step():
    a, b = nn.Parameter(dlc.ones(1)), nn.Parameter(dlc.ones(1))
    optimizer = optim.Adam([a, b], lr=0.1)
    for _ in range(3):
        a.grad = dlc.ones(1)
        optimizer.step()
    assert b.item() == 1 and optimizer.state[a]["step"].item() == 3 and optimizer.state[b]["step"].item() == 0
    b.grad = dlc.ones(1)
    optimizer.step()
    assert b.item() == pytest.approx(0.9, abs=1e-6) and optimizer.state[b]["step"].item() == 1
    assert optimizer.state[a]["step"].item() == 4


def test_groups():
    a, b = nn.Parameter(dlc.ones(1)), nn.Parameter(dlc.ones(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1)
    a.grad, b.grad = dlc.ones(1), dlc.ones(1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == 0
    optimizer.zero_grad()
    assert a.grad is None
    with pytest.raises(ValueError):
        optimizer.add_param_group({"params": [a]})
    with pytest.raises(ValueError):
        optim.SGD([], lr=0.1)
    with pytest.raises(TypeError):
        optim.SGD(a, lr=0.1)
    with pytest.raises(ValueError):
        optim.Adam([a], lr=-1)
    with pytest.raises(ValueError):
        optim.SGD([a * 2], lr=0.1)


def test_closure():
    p = nn.Parameter(dlc.tensor([3.0]))
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9 and p.item() == pytest.approx(2.4)


def test_state_dict_continues():
    def run(optimizer, p, first, last):
        for k in range(first, last):
            p.grad = dlc.tensor(gradient(k).astype(np.float32))
            optimizer.step()

    p = nn.Parameter(dlc.tensor([1.0, -2.0, 3.0]))
    a = optim.Adam([p], lr=0.1)
    run(a, p, 0, 3)
    q = nn.Parameter(p.detach().clone())
    b = optim.Adam([q], lr=0.5)
    b.load_state_dict(a.state_dict())
    run(a, p, 3, 6)
    run(b, q, 3, 6)
    assert dlc.equal(p, q) and b.param_groups[0]["lr"] == 0.1
    with pytest.raises(ValueError):
        optim.Adam([q, nn.Parameter(dlc.ones(1))]).load_state_dict(a.state_dict())


@pytest.mark.parametrize(
    "make, want",
    [
        (lambda o: optim.lr_scheduler.StepLR(o, 2, 0.1), [1, 1, 0.1, 0.1, 0.01]),
        (lambda o: optim.lr_scheduler.MultiStepLR(o, [1, 3], 0.1), [1, 0.1, 0.1, 0.01, 0.01]),
        (lambda o: optim.lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda o: optim.lr_scheduler.LinearLR(o, 0.5, total_iters=2), [0.5, 0.75, 1, 1, 1]),
        (lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 4), [(1 + math.cos(math.pi * k / 4)) / 2 for k in range(5)]),
    ],
)
def test_schedules(make, want):
    optimizer = optim.SGD([nn.Parameter(dlc.ones(1))], lr=1.0)
    schedule = make(optimizer)
    got = []
    for _ in want:
        got.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert got == pytest.approx(want)


def test_training_learns():
    dlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    x = dlc.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = dlc.tensor([[0.0], [1.0], [1.0], [0.0]])
    for _ in range(200):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2
