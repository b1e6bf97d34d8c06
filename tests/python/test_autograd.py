"""Gradients as Python sees them: accumulation, hooks, modes, higher derivatives, errors."""

import dlc
import pytest


def leaf(*values):
    return dlc.tensor(list(values), requires_grad=True)


def test_accumulation():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    assert x.grad is None
    x.grad = dlc.zeros(2)
    with pytest.raises(RuntimeError):
        x.grad = dlc.zeros(3)
    with pytest.raises(TypeError):
        x.grad = 1


def test_attributes():
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad and x.grad_fn is None
    assert "Mul" in y.grad_fn.name() and "Mul" in repr(y.grad_fn)
    assert len(y.grad_fn.next_functions) >= 1
    assert not y.detach().requires_grad and y.detach().data_ptr() == y.data_ptr()
    assert not x.data.requires_grad
    with pytest.raises(RuntimeError):
        dlc.ones(1, dtype=dlc.int64).requires_grad_()
    with pytest.raises(RuntimeError):
        y.requires_grad = False


def test_backward_arguments():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(RuntimeError):
        y.backward()
    y.backward(dlc.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 20]
    with pytest.raises(RuntimeError):
        dlc.ones(1).backward()


def test_second_backward_needs_retain_graph():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8]
    with pytest.raises(RuntimeError):
        y.backward()


def test_grad_function():
    x, z = leaf(2.0), leaf(1.0)
    y = (x**3).sum()
    (g,) = dlc.autograd.grad(y, x, create_graph=True)
    (gg,) = dlc.autograd.grad(g.sum(), x)
    assert g.tolist() == [12] and gg.tolist() == [12] and x.grad is None
    with pytest.raises(RuntimeError):
        dlc.autograd.grad((x * 2).sum(), z)
    assert dlc.autograd.grad((x * 2).sum(), [x, z], allow_unused=True)[1] is None


def test_modes():
    x = leaf(1.0)
    with dlc.no_grad():
        assert not dlc.is_grad_enabled() and not (x * 2).requires_grad
        with dlc.enable_grad():
            assert (x * 2).requires_grad
        assert not dlc.is_grad_enabled()
    assert dlc.is_grad_enabled()

    @dlc.no_grad()
    def f():
        return x * 2

    @dlc.no_grad
    def g():
        return x * 2

    assert not f().requires_grad and not g().requires_grad and f.__name__ == "f"
    with dlc.set_grad_enabled(False):
        assert not dlc.is_grad_enabled()
    assert dlc.is_grad_enabled()
    dlc.set_grad_enabled(False)
    assert not dlc.is_grad_enabled()
    dlc.set_grad_enabled(True)
    with pytest.raises(ZeroDivisionError), dlc.no_grad():
        raise ZeroDivisionError
    assert dlc.is_grad_enabled()
    mode = dlc.no_grad()
    with mode, mode:
        assert not dlc.is_grad_enabled()
    assert dlc.is_grad_enabled()

    @dlc.no_grad()
    def numbers():
        yield dlc.is_grad_enabled()
        yield dlc.is_grad_enabled()

    assert list(numbers()) == [False, False] and dlc.is_grad_enabled()


def test_ambient_modes_T05():
    def f(x):
        a = x * 2
        with dlc.no_grad():
            b = x * 3
        c = (x * 4).detach_()
        with dlc.enable_grad():
            d = x * 5
        return [t.requires_grad for t in (a, b, c, d)]

    x = leaf(1.0)
    assert f(x) == [True, False, False, True]
    with dlc.no_grad():
        assert f(x) == [False, False, False, True]


def test_hooks():
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.tolist() == [6, 6]
    handle.remove()
    double.remove()
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [9, 9]
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [29, 29]

    def fails(g):
        raise ValueError("from a hook")

    y = x * 2
    y.register_hook(fails)
    with pytest.raises(ValueError, match="from a hook"):
        y.sum().backward()
    with pytest.raises(RuntimeError):
        dlc.ones(1).register_hook(print)


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3] and y.retains_grad


def test_saved_tensor_changed_in_place():
    x = leaf(1.0)
    y = x.exp()
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="in place|in-place|inplace"):
        z.backward()


def test_in_place_on_leaf():
    x = leaf(1.0)
    with pytest.raises(RuntimeError):
        x.add_(1)
    with dlc.no_grad():
        x.add_(1)
    assert x.tolist() == [2]


def test_in_place_through_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [1, 5, 5]


def test_data_assignment():
    p = dlc.nn.Parameter(dlc.ones(2))
    p.data = dlc.zeros(3)
    assert p.shape == (3,) and p.requires_grad
    p.data.add_(2)
    assert p.tolist() == [2, 2, 2]
