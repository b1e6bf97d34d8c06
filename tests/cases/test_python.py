"""Public failure cases, Python semantics: closures, globals, classes, generators, exceptions, hooks, defaults."""

from collections import OrderedDict, namedtuple

import dlc
import pytest
from dlc import nn, tensor

from tests.cases.harness import assert_same, at_most


def test_P01_nonlocal_shared_by_two_functions():
    def make():
        c = 1

        def bump():
            nonlocal c
            c = c * 10

        def f(x):
            bump()
            return x + c

        return f

    f = dlc.compile(make())
    with at_most(2):
        assert [float(f(dlc.zeros(1))) for _ in range(4)] == [10.0, 100.0, 1000.0, 10000.0]


@pytest.mark.parametrize("order", [(2.0, 5.0, 2.0, -1.5), (-1.5, 2.0, 5.0, 2.0)])
def test_P03_class_attribute_changes(order):
    class Config:
        k = 2.0

    compiled = dlc.compile(lambda x: x * Config.k + Config.k - 1)
    with at_most(2):
        for k in order * 3:
            Config.k = k
            assert float(compiled(tensor([3.0]))) == 4 * k - 1


@pytest.mark.parametrize("order", [(1, -1), (-1, 1)])
def test_P04_global_function_rebound(order):
    global act
    acts = {1: lambda x: x + 1, -1: lambda x: x - 1}
    compiled = dlc.compile(lambda x: act(x) * 2 - 1)
    for _ in range(3):
        for sign in order:
            act = acts[sign]
            assert float(compiled(tensor([3.0]))) == 5.0 + 2 * sign


def test_P05_dict_order_is_state():
    def f(d, x):
        d.move_to_end("a")
        return x * d["b"]

    for keys in ("abc", "cab"):
        compiled = dlc.compile(f)
        for _ in range(3):
            for order in (keys, keys[::-1]):
                d = OrderedDict((k, ord(k) - ord("a") + 1) for k in order)
                assert float(compiled(d, tensor([2.0]))) == 4.0
                assert list(d) == [k for k in order if k != "a"] + ["a"]


def test_P07_generator_returned_to_the_caller():
    started = []

    def f(x):
        def g():
            started.append(True)
            yield x + 1
            yield x + 2
            return "done"

        return g()

    compiled = dlc.compile(f)
    for _ in range(3):
        started.clear()
        generator = compiled(tensor([1.0]))
        assert not started
        assert [float(next(generator)), float(next(generator))] == [2.0, 3.0]
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == "done"


def test_P08_return_inside_try_finally():
    events = []

    def f(x):
        try:
            return x * 2
        finally:
            events.append("closed")

    compiled = dlc.compile(f)
    for n in range(3):
        assert float(compiled(tensor([4.0]))) == 8.0
        assert events == ["closed"] * (n + 1)


@pytest.mark.parametrize("bad_first", [False, True])
def test_P08_exceptions_keep_class_message_and_effects(bad_first):
    events = []

    def f(x, bad):
        events.append("in")
        try:
            y = x * 2 + 1
            if bad:
                raise KeyError("wrong")
            return y
        except ValueError:
            events.append("never")
        finally:
            events.append("out")

    compiled = dlc.compile(f)
    for _ in range(3):
        events.clear()
        for bad in (bad_first, not bad_first):
            if bad:
                with pytest.raises(KeyError, match="wrong"):
                    compiled(tensor([1.0]), True)
            else:
                assert float(compiled(tensor([1.0]), False)) == 3.0
        assert events == ["in", "out", "in", "out"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_P10_arguments_and_output_structure_vary(order):
    def f(x, scale=1.0, *rest, bias=None, **kw):
        y = x * scale + sum(rest)
        return (y if bias is None else y + bias, None if bias is None else bias * 2, sorted(kw))

    calls = [
        (((), {}), (1.0, None, [])),
        (((3.0,), {}), (3.0, None, [])),
        (((3.0, 4.0), {"bias": 1, "z": 0}), (8.0, 2, ["z"])),
    ]
    compiled = dlc.compile(f)
    for _ in range(3):
        for i in order:
            (args, kwargs), want = calls[i]
            got = compiled(tensor([1.0]), *args, **kwargs)
            assert (float(got[0]), *got[1:]) == want
    result = compiled(tensor([1.0]), tensor([2.0]), bias=tensor([5.0]))
    assert_same(result, (tensor([7.0]), tensor([10.0]), []))


@pytest.mark.parametrize("name", ["inf", "nan", "self", "tmp0", "_", "L", "torch", "float", "dlc", "args", "x0", "__1"])
def test_P12_parameter_names_collide_with_generated_names(name):
    space = {}
    exec(f"def f(x, {name}):\n    return x * {name} + {name} - 1\n", space)
    compiled = dlc.compile(space["f"])
    with at_most(2):
        for v in (3, 4, 5):
            assert float(compiled(tensor([2.0]), v)) == 3 * v - 1
            assert float(compiled(tensor([2.0]), **{name: v})) == 3 * v - 1


@pytest.mark.parametrize("hooked_first", [False, True])
def test_P13_forward_hook_added_and_removed(hooked_first):
    m = nn.Linear(1, 1, bias=False)
    with dlc.no_grad():
        m.weight.fill_(2.0)
    compiled = dlc.compile(m)
    for _ in range(3):
        for hooked in (hooked_first, not hooked_first):
            hook = m.register_forward_hook(lambda module, inputs, output: output + 100) if hooked else None
            for _ in range(2):
                assert float(compiled(dlc.ones(1, 1))) == (102.0 if hooked else 2.0)
            if hook:
                hook.remove()


def test_P13_gradient_hook_added_and_removed():
    w = tensor([2.0], requires_grad=True)

    def f(x):
        (x * w * 3 + 1).sum().backward()
        g, w.grad = w.grad, None
        return g

    compiled = dlc.compile(f)
    for _ in range(3):
        assert float(compiled(dlc.ones(1))) == 3.0
        hook = w.register_hook(lambda g: g * 10)
        assert float(compiled(dlc.ones(1))) == 30.0
        hook.remove()
        assert float(compiled(dlc.ones(1))) == 3.0


def test_P15_mutable_default_argument():
    def f(x, hist=[]):  # noqa: B006
        hist.append(float(x.shape[0]))
        return x.sum() + len(hist)

    compiled = dlc.compile(f)
    with at_most(2):
        assert [float(compiled(dlc.zeros(1))) for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert f.__defaults__[0] == [1.0] * 5


def test_P15_tuple_subclass_with_its_own_getitem():
    class Reversed(namedtuple("Reversed", "first second")):
        def __getitem__(self, i):
            return super().__getitem__(1 - i)

    def f(p):
        return p.first * 10 + p[0] - 1, p

    compiled = dlc.compile(f)
    for _ in range(3):
        p = Reversed(tensor([1.0]), tensor([2.0]))
        value, back = compiled(p)
        assert float(value) == float(f(p)[0])
        assert type(back) is Reversed and back is p
