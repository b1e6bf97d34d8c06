"""dlc.compile as an API: what it wraps, how wrappers behave, what it tells, how errors come out."""

import copy
import inspect
import threading
import warnings

import dlc
import pytest
from dlc import nn


@pytest.fixture(autouse=True)
def fresh_counts():
    dlc.reset_compile_stats()


def test_forms_of_decoration():
    @dlc.compile
    def plain(x):
        """Doubles."""
        return x * 2

    @dlc.compile(fullgraph=True, dynamic=True, mode="max-autotune")
    def with_arguments(x):
        return x * 3

    x = dlc.ones(2)
    assert plain(x).tolist() == [2, 2] and with_arguments(x).tolist() == [3, 3]
    assert dlc.compile(lambda x: x + 1)(x).tolist() == [2, 2]
    assert plain.__name__ == "plain" and plain.__doc__ == "Doubles." and plain.__wrapped__.__name__ == "plain"
    assert list(inspect.signature(plain).parameters) == ["x"]
    assert dlc.compile(plain) is plain
    assert dlc.compile(len, disable=True) is len
    for bad in (3, nn.Linear, None and 0):
        if bad is not None:
            with pytest.raises(TypeError):
                dlc.compile(bad)
    with pytest.raises(RuntimeError, match="mode"):
        dlc.compile(len, mode="fast")


def test_methods():
    class Scaler:
        def __init__(self, s):
            self.s = s

        @dlc.compile
        def scale(self, x, *, shift=0.0):
            return x * self.s + shift

        @staticmethod
        @dlc.compile
        def double(x):
            return x * 2

        def other(self, x):
            return x - self.s

    a, b = Scaler(2.0), Scaler(5.0)
    x = dlc.ones(1)
    assert a.scale(x).item() == 2 and b.scale(x, shift=1.0).item() == 6 and Scaler.scale(a, x).item() == 2
    assert Scaler.double(x).item() == 2 and dlc.compile(a.other)(x).item() == -1


def test_modules_keep_their_class_and_state():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    fast = dlc.compile(model)
    assert isinstance(fast, nn.Sequential) and type(fast).__name__ == "Sequential" and fast is not model
    assert list(fast.state_dict()) == list(model.state_dict()) and fast[0] is model[0] and len(fast) == 2
    assert list(map(id, fast.parameters())) == list(map(id, model.parameters()))
    fast.eval()
    assert not model.training and not model[1].training and not fast.training
    x = dlc.rand(4, 2)
    assert dlc.allclose(fast(x), model(x)) and fast(x).requires_grad
    model.note = "shared"
    assert fast.note == "shared"
    fast.load_state_dict({k: v * 0 for k, v in model.state_dict().items()})
    assert model[0].weight.abs().sum().item() == 0
    assert dlc.compile(fast) is fast and repr(fast) == repr(model)
    other = copy.deepcopy(fast)
    assert isinstance(other, nn.Sequential) and other[0].weight is not model[0].weight
    assert dlc.equal(other(x), fast(x))


def test_module_compile_in_place():
    model = nn.Linear(2, 2)
    model.compile()
    x = dlc.ones(1, 2)
    assert dlc.allclose(model(x), nn.functional.linear(x, model.weight, model.bias))


def test_hooks_and_mode_on_wrapper_P13():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    fast = dlc.compile(model)
    x = dlc.ones(1)
    assert fast(x).item() == 2
    handle = model.register_forward_hook(lambda m, i, o: o + 100)
    assert fast(x).item() == 102
    handle.remove()
    assert fast(x).item() == 2


def test_exceptions_come_out_as_they_are():
    seen = []

    @dlc.compile
    def f(x, fail):
        x.add_(1)
        seen.append("ran")
        if fail:
            raise KeyError("mine")
        return x * 2

    x = dlc.zeros(2)
    with pytest.raises(KeyError, match="mine"):
        f(x, True)
    assert x.tolist() == [1, 1] and seen == ["ran"]
    assert f(x, False).tolist() == [4, 4]


def test_shape_errors_are_raised_at_the_users_line():
    @dlc.compile
    def f(a, b):
        c = a * 2
        return c @ b

    with pytest.raises(RuntimeError, match="test_compile.py:"):
        f(dlc.ones(2, 3), dlc.ones(2, 3))


def test_breaks_are_counted_and_explained():
    @dlc.compile
    def f(x):
        y = (x * 2 + 1).exp()
        if y.sum() > 1000:
            return y
        return -y

    x = dlc.ones(3)
    want = -(x * 2 + 1).exp()
    assert dlc.allclose(f(x), want)
    assert dlc.compile_stats()["breaks"] == 1
    explanation = dlc.explain(f)(x)
    assert explanation.graph_break_count >= 1 and any("test_compile.py" in e["loc"] for e in explanation.break_reasons)
    assert "break" in str(explanation)


def test_fullgraph_raises_on_a_break():
    @dlc.compile(fullgraph=True)
    def f(x):
        return x * 2 if (x + 1).sum().item() > 0 else x

    with pytest.raises(RuntimeError):
        f(dlc.ones(2))


def test_explain_takes_plain_functions(capsys):
    explanation = dlc.explain(lambda x: (x * 2 + 1).sum())(dlc.ones(3))
    assert explanation.graph_break_count == 0 and explanation.graph_count == 1
    assert "graph 0" in capsys.readouterr().out


def test_statistics():
    f = dlc.compile(lambda x: (x * 2 + 1).exp().sum())
    for _ in range(3):
        f(dlc.ones(4))
    stats = dlc.compile_stats()
    assert {"compilations", "breaks", "fallbacks", "hits"} <= set(stats) and stats["breaks"] == 0
    dlc.reset_compile_stats()
    assert dlc.compile_stats()["hits"] == 0


def test_is_compiling_and_disable():
    states = []

    @dlc.compiler.disable
    def aside(x):
        states.append(dlc.compiler.is_compiling())
        return x + 1

    @dlc.compile
    def f(x):
        states.append(dlc.compiler.is_compiling())
        return aside(x * 2) * 3

    assert f(dlc.ones(1)).item() == 9 and states == [True, False] and not dlc.compiler.is_compiling()
    assert aside(dlc.ones(1)).item() == 2


def test_nested_compiled_functions():
    inner = dlc.compile(lambda x: x * 2)
    outer = dlc.compile(lambda x: inner(x) + inner(x + 1))
    assert outer(dlc.ones(2)).tolist() == [6, 6]


def test_generators_run_lazily_P07():
    log = []

    @dlc.compile
    def f(x):
        def g():
            log.append("body")
            yield x + 1
            yield x + 2
            return "done"

        return g()

    it = f(dlc.ones(1))
    assert log == [] and next(it).item() == 2 and next(it).item() == 3
    with pytest.raises(StopIteration) as stop:
        next(it)
    assert stop.value.value == "done"


def test_results_of_any_structure():
    @dlc.compile
    def f(x):
        y = x * 2
        return {"y": y, "list": [y + 1, None, 3], "same": y, "input": x, "view": y[:1]}

    x = dlc.ones(2)
    r = f(x)
    assert r["same"] is r["y"] and r["input"] is x and r["list"][0].tolist() == [3, 3] and r["list"][1:] == [None, 3]
    r["y"].fill_(7)
    assert r["view"].tolist() == [7]


def test_gradients_through_compiled_forward():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = dlc.rand(5, 3)
    model(x).sum().backward()
    want = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    dlc.compile(model)(x).sum().backward()
    for p, w in zip(model.parameters(), want, strict=True):
        assert dlc.allclose(p.grad, w, atol=1e-6)


def test_threads():
    f = dlc.compile(lambda x, k: (x * k).sum() + k)
    wrong = []

    def work(k):
        for _ in range(20):
            if f(dlc.ones(8), k).item() != 9 * k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_values_escape_through_every_door():
    import numpy as np

    @dlc.compile
    def f(x):
        y = x * 2
        return (
            y.numpy().tolist(),
            y.tolist(),
            repr(y),
            float(y.sum()),
            [v.item() for v in y],
            np.asarray(y).sum(),
            len(y),
            2 in y,
            y.data_ptr() != 0,
            np.from_dlpack(y).tolist(),
        )

    assert f(dlc.ones(2)) == ([2, 2], [2, 2], "tensor([2., 2.])", 4.0, [2, 2], 4.0, 2, True, True, [2, 2])


def test_random_stream_is_the_eager_one_T08():
    def f():
        a = dlc.rand(3)
        dlc.rand(5)
        return a, dlc.randn(3), nn.functional.dropout(dlc.ones(8), 0.5, True)

    dlc.manual_seed(0)
    eager, state = f(), dlc.get_rng_state()
    fast = dlc.compile(f)
    for _ in range(2):
        dlc.manual_seed(0)
        assert all(dlc.equal(a, b) for a, b in zip(fast(), eager, strict=True))
        assert dlc.equal(dlc.get_rng_state(), state)


def test_optimizer_step_with_changing_rate_T11():
    def run(compiled):
        dlc.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = dlc.optim.Adam(model.parameters(), lr=0.1)
        step = dlc.compile(optimizer.step) if compiled else optimizer.step
        x = dlc.rand(2, 4)
        for _ in range(10):
            model(x).square().sum().backward()
            step()
            optimizer.zero_grad()
            optimizer.param_groups[0]["lr"] *= 0.9
        return model.weight.detach()

    want = run(False)
    dlc.reset_compile_stats()
    got = run(True)
    assert dlc.allclose(got, want, rtol=1e-6, atol=1e-7) and dlc.compile_stats()["compilations"] <= 2


def test_an_index_that_varies_may_be_negative():
    def f(a, b, i):
        return (dlc.select_scatter(a * 2, b + 1, 0, i) * 3).exp().sin() * 2

    compiled = dlc.compile(f)
    for i in (-1, -2, -3, -5, 0, 1, 4, -1):
        a, b = dlc.arange(10.0).reshape(5, 2), dlc.ones(2)
        assert dlc.equal(compiled(a, b, i), f(a, b, i)), i
    assert dlc.compile_stats()["fallbacks"] == 0


def test_a_batch_of_one_after_others_compiles():
    """A symbol that happens to be 1 broadcasts as itself."""
    conv, norm = dlc.nn.Conv2d(3, 8, 3), dlc.nn.BatchNorm2d(8)
    compiled = dlc.compile(lambda x: norm(conv(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (2, 1, 4, 1):
            compiled(dlc.randn(n, 3, 8, 8).requires_grad_()).square().mean().backward()
    assert dlc.compile_stats()["fallbacks"] == 0


@pytest.mark.parametrize("dtype", [dlc.float16, dlc.bfloat16])
def test_running_statistics_keep_their_dtype(dtype):
    norms = [dlc.nn.BatchNorm2d(3).to(dtype) for _ in range(2)]
    eager, compiled = (lambda x, n=n: dlc.relu(n(dlc.relu(x * 2))) for n in norms)
    compiled = dlc.compile(compiled)
    with warnings.catch_warnings(), dlc.no_grad():
        warnings.simplefilter("error")
        for _ in range(3):
            x = dlc.randn(2, 3, 4, 4).to(dtype)
            assert dlc.equal(eager(x), compiled(x))
    assert norms[1].running_var.dtype == dtype and dlc.equal(norms[0].running_var, norms[1].running_var)
