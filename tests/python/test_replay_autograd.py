"""Results of replayed calls have the gradient functions that Python would have given them."""

import dlc
import dlc.nn.functional as F
import pytest
from dlc import nn, optim


def replays(compiled, *args):
    before = dlc.compile_stats()["replays"]
    result = compiled(*args)
    return dlc.compile_stats()["replays"] - before == 1, result


def leaves(*shapes):
    dlc.manual_seed(3)
    return [dlc.randn(*s).requires_grad_() for s in shapes]


def gradients(f, args, twice=False):
    out = f(*args)
    out = out if isinstance(out, tuple) else (out,)
    loss = sum((t * t).sum() for t in out if t.requires_grad)
    wanted = [a for a in args if isinstance(a, dlc.Tensor) and a.requires_grad]
    grads = dlc.autograd.grad(loss, wanted, create_graph=twice)
    if twice:
        grads = dlc.autograd.grad(sum((g * g).sum() for g in grads), wanted)
    return grads


def check(f, make, twice=False):
    compiled = dlc.compile(f)
    for _ in range(3):
        compiled(*make())
    args = make()
    before = dlc.compile_stats()["replays"]
    got = gradients(compiled, args, twice)
    assert dlc.compile_stats()["replays"] - before >= 1, dlc.explain(compiled)
    for a, b in zip(got, gradients(f, make(), twice)):
        # Gradients of gradients are sums of large parts that a plan adds in another order.
        scale = float(b.abs().max()) if twice else 1.0
        assert dlc.allclose(a, b, rtol=1e-6, atol=1e-6 * max(1.0, scale))
    return compiled


def layer(x, w, b):
    return F.gelu(x @ w + b).softmax(-1)


def test_backward_of_a_replayed_forward():
    check(layer, lambda: leaves((3, 4), (4, 5), (5,)))


def test_double_backward():
    check(lambda x, w: (x @ w).exp() * x, lambda: leaves((3, 3), (3, 3)), twice=True)


def test_several_results_and_views():
    check(lambda x, y: (x * y, x.t(), (x + 1).reshape(-1)), lambda: leaves((3, 4), (3, 4)))


def test_no_gradient_where_python_gives_none():
    def f(x):
        return x.detach() * 2, (x * 2).detach(), x * 2

    compiled = dlc.compile(f)
    (x,) = leaves((4,))
    for _ in range(3):
        compiled(x)
    hit, (a, b, c) = replays(compiled, x)
    assert hit and not a.requires_grad and not b.requires_grad and c.requires_grad
    assert c.grad_fn is not None and not c.is_leaf


def test_the_same_memory_twice():
    def f(x):
        y = x * 2
        return y.detach(), y

    compiled = dlc.compile(f)
    (x,) = leaves((4,))
    for _ in range(3):
        compiled(x)
    hit, (a, b) = replays(compiled, x)
    assert hit and not a.requires_grad and b.requires_grad
    assert a.data_ptr() == b.data_ptr()
    b.sum().backward()
    assert x.grad.tolist() == [2.0] * 4


def test_sizes_vary():
    compiled = dlc.compile(layer)
    for n in (3, 4, 5, 6, 7):
        args = leaves((n, 4), (4, 5), (5,))
        plain = leaves((n, 4), (4, 5), (5,))
        for a, b in zip(gradients(compiled, args), gradients(layer, plain)):
            assert dlc.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_numbers_vary():
    def f(x, scale):
        return (x * scale).exp() * scale

    compiled = dlc.compile(f)
    for scale in (0.5, 0.25, 0.75, 1.5, 2.5):
        (x,), (y,) = leaves((4,)), leaves((4,))
        for a, b in zip(gradients(compiled, (x, scale)), gradients(f, (y, scale))):
            assert dlc.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_a_changed_saved_tensor_is_an_error():
    compiled = dlc.compile(lambda x, y: x * y)
    (x,), y = leaves((4,)), dlc.ones(4)
    for _ in range(3):
        compiled(x, y)
    hit, out = replays(compiled, x, y)
    y.add_(1)
    assert hit
    with pytest.raises(RuntimeError, match="changed by an in-place op"):
        out.sum().backward()


def test_an_input_view_keeps_its_base():
    compiled = dlc.compile(lambda x: x.view(2, 2))
    x = dlc.zeros(4)
    for _ in range(3):
        compiled(x)
    hit, v = replays(compiled, x)
    (w,) = leaves((2, 2))
    v.mul_(w)
    assert hit and x.requires_grad


def test_views_of_tensors_that_start_elsewhere():
    compiled = dlc.compile(lambda x: (x[1:], x * 2))
    base = dlc.arange(12.0)
    for start in (0, 4, 8, 4):
        x = base[start : start + 4]
        for _ in range(2):
            tail, double = compiled(x)
            assert tail.tolist() == x[1:].tolist() and double.tolist() == (x * 2).tolist()


def test_a_training_loop_with_an_eager_loss():
    def train(model, step):
        o = optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for k in range(8):
            dlc.manual_seed(k)
            x = dlc.randn(6, 4)
            o.zero_grad()
            loss = ((step(x) - x) ** 2).mean()
            loss.backward()
            o.step()
            losses.append(loss.item())
        return losses

    def model():
        dlc.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

    plain, other = model(), model()
    compiled = dlc.compile(other)
    assert train(plain, plain) == pytest.approx(train(other, compiled), rel=1e-5)


def test_writes_to_tensors_that_start_elsewhere():
    def f(x):
        x.add_(1)
        x[1:].mul_(2)

    compiled = dlc.compile(f)
    mine, theirs = dlc.arange(12.0), dlc.arange(12.0)
    for start in (4, 4, 4, 0, 8, 4, 0):
        compiled(mine[start : start + 4])
        f(theirs[start : start + 4])
        assert mine.tolist() == theirs.tolist()
    longer, other = dlc.arange(20.0), dlc.arange(20.0)
    compiled(longer[4:8])
    f(other[4:8])
    assert longer.tolist() == other.tolist()


def test_gradients_of_tensors_that_start_elsewhere():
    def f(x, w):
        return x * w, x.exp()

    compiled = dlc.compile(f)
    base = dlc.arange(12.0) / 8
    for start in (4, 4, 4, 0, 8, 4):
        (w,), (v,) = leaves((4,)), leaves((4,))
        got = gradients(compiled, (base[start : start + 4], w))
        want = gradients(f, (base[start : start + 4], v))
        assert dlc.allclose(got[0], want[0])
