"""dlc.compile as people use it: what it takes, what comes out of it, its arguments, marks of sizes, disable."""

import copy
import functools
import inspect
import pickle

import dlc
import pytest
from dlc import nn


@pytest.fixture(autouse=True)
def fresh_counts():
    dlc.reset_compile_stats()


def compilations():
    return dlc.compile_stats()["compilations"]


def formula(x):
    return (x * 2 + 1).exp().sum()


class Scaler:
    factor = 3.0

    def __init__(self, k):
        self.k = k

    def method(self, x):
        return x * self.k + 1 - x

    def __call__(self, x):
        return (x * self.k + 1) * 2

    @dlc.compile
    def decorated(self, x):
        return x * self.k + 2 - x

    @dlc.compile
    @classmethod
    def of_class(cls, x):
        return x * cls.factor + 1 - x

    @dlc.compile
    @staticmethod
    def static(x):
        return x * 5 + 1 - x

    @classmethod
    @dlc.compile
    def inner_class(cls, x):
        return x * cls.factor + 2 - x


module_level = dlc.compile(formula)


@dlc.compile
def by_name(x):
    return (x * 3 + 1).exp().sum()


# --- what is compiled


def test_methods_of_every_kind():
    s, x = Scaler(4.0), dlc.ones(3)
    assert s.decorated(x).tolist() == [5] * 3 and Scaler.decorated(s, x).tolist() == [5] * 3
    assert s.of_class(x).tolist() == [3] * 3 and Scaler.of_class(x).tolist() == [3] * 3
    assert s.static(x).tolist() == [5] * 3 and Scaler.static(x).tolist() == [5] * 3
    assert s.inner_class(x).tolist() == [4] * 3 and Scaler.inner_class(x).tolist() == [4] * 3
    assert dlc.compile(s.method)(x).tolist() == [4] * 3 and dlc.compile(Scaler.method)(s, x).tolist() == [4] * 3


def test_subclass_calls_the_compiled_method_of_its_base():
    class Sub(Scaler):
        def decorated(self, x):
            return super().decorated(x) * 10

    assert Sub(4.0).decorated(dlc.ones(1)).item() == 50


def test_lambdas_callables_partials_and_c_functions():
    x = dlc.ones(4)
    assert dlc.compile(lambda a, *, b=2: (a * b + 1) * b)(x, b=3).tolist() == [12] * 4
    assert dlc.compile(Scaler(4.0))(x).tolist() == [10] * 4
    part = functools.partial(lambda a, b, c=1: (a * b + c) * 2, 3, c=2)
    compiled = dlc.compile(part)
    assert compiled(x).tolist() == [10] * 4 and "partial(" in compiled.name
    assert dlc.compile(dlc.add)(x, x).tolist() == [2] * 4 and dlc.compile(len)([1, 2]) == 2
    assert dlc.compile(dlc.compile(formula)) is not formula and dlc.compile(max)(1, 2) == 2


def test_recursion_and_compiled_in_compiled():
    @dlc.compile
    def power(x, n):
        return x if n == 0 else power(x * 2 + 1, n - 1) - 1

    def plain(x, n):
        return x if n == 0 else plain(x * 2 + 1, n - 1) - 1

    x = dlc.tensor([1.0, 2.0])
    for n in (3, 5, 3):
        assert dlc.equal(power(x, n), plain(x, n))
    outer = dlc.compile(lambda x: module_level(x * 2) + module_level(x))
    assert dlc.allclose(outer(x), formula(x * 2) + formula(x), rtol=1e-6)
    assert dlc.compile_stats()["breaks"] == 0


def test_generator_functions_run_compiled_between_yields():
    closed = []

    def count(x, n):
        try:
            for _ in range(n):
                x = (x * 2 + 1) * 1.5
                got = yield x
                if got is not None:
                    x = x + got
            return "end"
        except ValueError as e:
            yield x * 0 + len(str(e))
        finally:
            closed.append(n)

    compiled = dlc.compile(count)
    assert inspect.isgeneratorfunction(compiled) and compiled.__name__ == "count"

    def drive(make):
        it = make(dlc.ones(2), 3)
        seen = [next(it).tolist(), it.send(10.0).tolist(), it.send(dlc.ones(2)).tolist()]
        with pytest.raises(StopIteration) as stop:
            next(it)
        it = make(dlc.ones(2), 5)
        next(it)
        seen += [it.throw(ValueError("four")).tolist(), stop.value.value]
        it.close()
        it = make(dlc.ones(2), 7)
        next(it)
        it.close()
        return seen

    want = drive(count)
    assert drive(compiled) == want and closed == [3, 5, 7] * 2 and compilations() > 0

    class Holder:
        @dlc.compile
        def each(self, x):
            yield from (x * k * 2 + 1 for k in range(3))

    assert [v.item() for v in Holder().each(dlc.ones(1))] == [1, 3, 5]


def test_coroutines_and_what_is_not_callable():
    @dlc.compile
    async def f(x):
        return x * 2

    with pytest.raises(StopIteration) as stop:
        f(dlc.ones(1)).send(None)
    assert stop.value.value.item() == 2
    for bad in (3, "f", Scaler, None.__class__, property(lambda s: 1)):
        with pytest.raises(TypeError, match="compile: expected"):
            dlc.compile(bad)


def test_functions_copy_and_pickle_like_functions():
    assert copy.copy(by_name) is by_name and copy.deepcopy([by_name])[0] is by_name
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(dlc.compile(lambda x: x))


# --- Modules


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("count", dlc.zeros(()))
        self.act = by_name
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.count.add_(1)
        return self.b(self.a(x).relu()) + 1

    def encode(self, x):
        return self.a(x).relu() * 2

    def twice(self, x):
        return self(x) + self(x)


def test_module_is_the_same_but_for_its_call():
    model = Net()
    fast = dlc.compile(model)
    assert isinstance(fast, Net) and type(fast).__name__ == "Net" and type(fast).__module__ == Net.__module__
    assert list(fast.state_dict()) == list(model.state_dict()) and "count" in fast.state_dict()
    assert [n for n, _ in fast.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert fast.a is model.a and fast.children().__next__() is model.a and repr(fast) == repr(model)
    x = dlc.rand(3, 4)
    assert dlc.allclose(fast(x), model(x)) and model.calls == 2 and fast.count.item() == 2
    fast.calls = 10
    model.extra = "e"
    assert model.calls == 10 and fast.extra == "e" and hasattr(fast, "extra")
    del fast.extra
    assert not hasattr(model, "extra")
    fast.new = nn.Linear(1, 1)
    assert "new.weight" in model.state_dict() and model.new is fast.new
    assert dlc.equal(fast.encode(x), model.encode(x)) and dlc.allclose(fast.twice(x), model.twice(x))
    assert fast.eval() is fast and not model.training and fast.train() is fast and model.training
    assert fast.to(dlc.float64) is fast and model.a.weight.dtype is dlc.float64
    assert dlc.allclose(fast(x.double()), model(x.double()))
    fast.requires_grad_(False)
    assert not model.a.weight.requires_grad and not fast(x.double()).requires_grad


def test_module_copies_and_pickles():
    fast = dlc.compile(Net(), fullgraph=True, dynamic=False)
    x = dlc.rand(3, 4)
    want = fast(x)
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast)), copy.deepcopy({"m": fast})["m"]):
        assert isinstance(other, Net) and dlc.equal(other(x), want) and other.a is not fast.a
        inner = other._compiled_call
        assert inner.fullgraph and inner.dynamic is False and inner.name == "Net" and other.act is by_name
    shallow = copy.copy(fast)
    assert shallow.a is fast.a and dlc.equal(shallow(x), want)


def test_methods_compiled_as_attributes_are_copied_bound_to_the_copy():
    model = Net()
    model.fast_encode = dlc.compile(model.encode, fullgraph=True)
    model.compile(dynamic=False)
    x = dlc.rand(2, 4)
    want, call = model.fast_encode(x), model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.fast_encode.fullgraph and other.fast_encode.__wrapped__.__self__ is other
        assert other.__dict__["forward"].dynamic is False
        with dlc.no_grad():
            other.a.weight.zero_()
            other.a.bias.fill_(1.0)
        assert (other.fast_encode(x) == 2).all() and dlc.equal(model.fast_encode(x), want)
        assert dlc.equal(model(x), call) and not dlc.equal(other(x), call)


def test_module_inside_a_model_and_hooks():
    model = nn.Sequential(nn.Linear(4, 4), Net(), nn.Linear(2, 2))
    names, x, seen = list(model.state_dict()), dlc.rand(2, 4), []
    want = model(x)
    model[1] = dlc.compile(model[1])
    assert list(model.state_dict()) == names and dlc.allclose(model(x), want, atol=1e-6)
    handle = model[1].register_forward_hook(lambda m, i, o: seen.append(type(m).__name__) or o * 2)
    assert not dlc.allclose(model(x), want) and seen == ["Net"]
    handle.remove()
    assert dlc.allclose(model(x), want, atol=1e-6)
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    other = copy.deepcopy(model)
    assert isinstance(other[1], Net) and dlc.allclose(other(x), want, atol=1e-6)


def test_training_step_and_optimizer_step():
    def train(compile_step, compile_optimizer):
        dlc.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).double()
        optimizer = dlc.optim.AdamW(model.parameters(), lr=0.05)
        update = dlc.compile(optimizer.step) if compile_optimizer else optimizer.step

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            update()
            return loss

        if compile_step:
            step = dlc.compile(step)
        x, y = dlc.rand(8, 4).double(), dlc.rand(8, 1).double()
        return [step(x, y).item() for _ in range(6)]

    want = train(False, False)
    assert want[-1] < want[0]
    for choice in ((True, False), (False, True), (True, True)):
        assert train(*choice) == pytest.approx(want, rel=1e-9)


# --- arguments


def test_decorator_with_arguments_keeps_them():
    @dlc.compile(fullgraph=True, dynamic=False, background=False, options={"name": "mine", "quiet": True})
    def f(x):
        return formula(x)

    assert f.fullgraph and f.dynamic is False and f.name == "mine" and f.quiet and not f.background
    assert dlc.compile(backend="eager")(formula) is formula and dlc.compile(formula, disable=True) is formula
    assert dlc.compile(disable=True)(formula) is formula


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"mode": "fast"}, RuntimeError, "max-autotune"),
        ({"backend": "tvm"}, RuntimeError, "'dlc'"),
        ({"backend": formula}, (RuntimeError, TypeError), "backend"),
        ({"dynamic": "yes"}, TypeError, "True or False"),
        ({"options": {"backgroud": True}}, RuntimeError, "'background'"),
        ({"options": {"background": 1}}, RuntimeError, "must be a bool"),
        ({"options": [1]}, TypeError, "dict"),
        ({"options": {"quiet": True}, "mode": "default"}, RuntimeError, "one of them"),
    ],
)
def test_arguments_are_checked(arguments, error, text):
    for use in (lambda: dlc.compile(formula, **arguments), lambda: dlc.compile(**arguments)):
        with pytest.raises(error, match=text):
            use()


def test_lists_of_names():
    assert {"dlc", "eager"} <= set(dlc.compiler.list_backends())
    assert {"background", "quiet", "name", "tuning_seconds", "tuning_progress"} == set(dlc.compiler.list_options())


def sizes_seen(f, sizes):
    dlc.reset_compile_stats()
    for n in sizes:
        assert dlc.allclose(f(dlc.ones(n, 3)), formula(dlc.ones(n, 3)), rtol=1e-5)
    return compilations()


def test_dynamic_says_when_sizes_are_lifted():
    sizes = (5, 6, 7, 9, 5)
    assert sizes_seen(dlc.compile(lambda x: formula(x)), sizes) == 2
    assert sizes_seen(dlc.compile(lambda x: formula(x), dynamic=True), sizes) == 1
    assert sizes_seen(dlc.compile(lambda x: formula(x), dynamic=False), sizes) == 4


def test_dynamic_leaves_parameters_alone():
    layer = nn.Linear(6, 6)
    f = dlc.compile(lambda x: layer(x).relu() + 1, dynamic=True)
    for n in (6, 4, 9, 2, 6):
        x = dlc.rand(n, 6)
        assert dlc.allclose(f(x), layer(x).relu() + 1, atol=1e-6)
    assert compilations() <= 2


def test_marked_sizes():
    f = dlc.compile(lambda x, y: ((x * 2 + 1) @ y).relu() + 1)
    y = dlc.rand(4, 5)
    for n in (8, 3, 17, 1, 0, 2):
        x = dlc.rand(n, 4)
        dlc.mark_dynamic(x, 0)
        assert dlc.allclose(f(x, y), ((x * 2 + 1) @ y).relu() + 1, atol=1e-5)
    assert compilations() <= 3 and any("s0" in s for g in dlc.explain(f)(dlc.rand(6, 4), y).graphs for s in g["sizes"])

    g = dlc.compile(lambda x: formula(x))
    dlc.reset_compile_stats()
    for a, b in ((4, 3), (5, 3), (6, 3), (4, 7), (5, 7), (6, 7)):
        x = dlc.rand(a, b)
        dlc.mark_static(x, 0)
        assert dlc.allclose(g(x), formula(x), rtol=1e-5)
    assert compilations() == 6  # three first sizes, each once static and once with the second lifted

    x = dlc.ones(2, 3)
    dlc.mark_dynamic(x, (0, 1))
    dlc.mark_static(x, -1)
    dlc.maybe_mark_dynamic(x, 0)
    assert x._dlc_dim_marks == (1, 2)
    dlc.mark_static(x)
    assert x._dlc_dim_marks == (0, 3)
    with pytest.raises(IndexError, match="dim 2"):
        dlc.mark_dynamic(x, 2)
    with pytest.raises(TypeError, match="Tensor"):
        dlc.mark_static([1])


def test_a_mark_that_cannot_be_kept_is_told():
    f = dlc.compile(lambda x, y: (x + y) * 2 - y)
    x = dlc.rand(5, 3)
    dlc.mark_dynamic(x, 0)
    y = nn.Parameter(dlc.rand(5, 3))  # belongs to the program: its size is fixed, and so is what is added to it
    assert dlc.allclose(f(x, y), (x + y) * 2 - y)
    assert any(e["kind"] == "limit" and "marked dynamic" in e["text"] for e in f.events())


# --- disable, stance, reset


def test_disable_forms():
    states = []

    def record():
        states.append(dlc.compiler.is_compiling())

    class Thing:
        @dlc.compiler.disable
        def method(self, x):
            record()
            return x + 1

        @dlc.compiler.disable()
        @staticmethod
        def static(x):
            record()
            return x + 2

    @dlc.compile
    def f(x):
        record()
        y = Thing().method(x * 2) + Thing().static(x)
        with dlc.compiler.disable():
            record()
            y = y * 2
        record()
        return y

    assert f(dlc.ones(1)).item() == 12 and states == [True, False, False, False, True]
    layer = dlc.compiler.disable(nn.Linear(2, 2))
    assert isinstance(layer, nn.Linear) and copy.deepcopy(layer)(dlc.ones(1, 2)).shape == (1, 2)
    for bad in (nn.Linear, 3):
        with pytest.raises(TypeError):
            dlc.compiler.disable(bad)


def test_disable_recursive_or_not():
    states = []

    @dlc.compile
    def inner(x):
        states.append(dlc.compiler.is_compiling())
        return formula(x)

    for recursive in (True, False):
        aside = dlc.compiler.disable(lambda x: inner(x), recursive=recursive)
        whole = dlc.compile(lambda x, aside=aside: aside(x * 2) + 1)
        x = dlc.ones(3)
        assert dlc.allclose(whole(x), formula(x * 2) + 1) and dlc.allclose(aside(x), formula(x))
        assert dlc.compiler.disable(inner)(x).shape == ()
    assert states == [False, False, False, True, True, False]
    assert not dlc.compiler.is_compiling() and inner(dlc.ones(3)) is not None and states[-1]


def test_errors_inside_disabled_code_leave_nothing_behind():
    @dlc.compiler.disable
    def bad(x):
        raise KeyError("k")

    @dlc.compile
    def f(x):
        y = x * 2 + 1
        try:
            bad(y)
        except KeyError:
            y = y * 3
        return y - 1

    assert f(dlc.ones(2)).tolist() == [8, 8] and not dlc.compiler.is_compiling()


def test_stance():
    states = []

    @dlc.compile
    def f(x):
        states.append(dlc.compiler.is_compiling())
        return x * 2 + 1

    usual = dlc.config.mode
    with dlc.compiler.set_stance("force_eager"):
        f(dlc.ones(1))
        with dlc.compiler.set_stance("default"):
            f(dlc.ones(1))
        f(dlc.ones(1))
    f(dlc.ones(1))
    on = usual != "eager"
    assert states == [False, on, False, on] and dlc.config.mode == usual
    with pytest.raises(RuntimeError, match="force_eager"):
        dlc.compiler.set_stance("slow")


def test_reset_drops_code():
    f = dlc.compile(lambda x: formula(x))
    f(dlc.ones(3))
    f(dlc.ones(4))
    assert f.num_entries == 2
    dlc.compiler.reset()
    assert f.num_entries == 0 and f.events() == []
    assert dlc.allclose(f(dlc.ones(3)), formula(dlc.ones(3))) and f.num_entries == 1
