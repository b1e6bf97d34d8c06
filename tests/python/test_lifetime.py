"""What compiled functions keep alive, and that they keep nothing for long."""

import gc
import resource
import weakref

import dlc
from dlc import nn


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


MB = 1 << 20


def test_100_000_calls_do_not_grow():
    f = dlc.compile(lambda x, k: (x * k + 1).exp().sum())
    x = dlc.ones(4)
    for k in range(1000):
        f(x, k)
    before, tensors = resident(), dlc.memory_stats()["allocated"]
    for k in range(100_000):
        f(x, k * 0.5)
    gc.collect()
    assert resident() - before < 5 * MB and dlc.memory_stats()["allocated"] <= tensors


def test_500_modules_compiled_and_deleted():
    x = dlc.rand(8, 16)

    def round_(i):
        model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4 + i % 3))
        fast = dlc.compile(model)
        fast(x).sum().backward()
        return weakref.ref(model), weakref.ref(fast), weakref.ref(model[0].weight), weakref.ref(fast._compiled_call)

    for i in range(30):
        round_(i)
    gc.collect()
    before = resident()
    refs = [r for i in range(500) for r in round_(i)]
    gc.collect()
    assert not any(r() is not None for r in refs) and resident() - before < 5 * MB


def test_500_new_programs_compiled_and_deleted():
    x = dlc.rand(8)

    def round_(i):
        space = {}
        exec(f"def f(x):\n    y = x * 2 + 1\n    y = y.exp()\n    return (y - {i}).sum()", space)
        dlc.compile(space["f"])(x)

    for i in range(30):
        round_(i)
    gc.collect()
    before = resident()
    for i in range(500):
        round_(i + 30)
    gc.collect()
    assert resident() - before < 5 * MB


def test_a_call_keeps_no_arguments_or_results():
    class Box:
        pass

    def f(x, box):
        y = x * 2 + 1
        box.kept = y
        return y.exp() + box.kept

    compiled = dlc.compile(f)
    for _ in range(3):
        box, x = Box(), dlc.rand(1000)
        result = compiled(x, box)
        refs = [weakref.ref(o) for o in (box, x, result)]
        del box, x, result
        gc.collect()
        assert [r() for r in refs] == [None] * 3


def test_an_exception_keeps_nothing():
    def f(x):
        y = (x * 2 + 1).exp()
        raise ValueError(y)

    compiled = dlc.compile(f)
    x = dlc.rand(1000)
    try:
        compiled(x)
    except ValueError as e:
        ref = weakref.ref(e.args[0])
    refs = [ref, weakref.ref(x)]
    del x
    gc.collect()
    assert [r() for r in refs] == [None] * 2


def test_cycles_through_compiled_functions_are_collected():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.fast = dlc.compile(self.step)
            self.compile()

        def step(self, x):
            return self.layer(x).relu() + 1

        def forward(self, x):
            return self.fast(x) * 2

    model = Model()
    model(dlc.rand(2, 4))
    refs = [weakref.ref(model), weakref.ref(model.fast), weakref.ref(model.layer.weight)]
    del model
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_reset_frees_code_but_not_results():
    f = dlc.compile(lambda x: (x * 2 + 1, (x * 3).exp()))
    a, b = f(dlc.ones(100))
    dlc.compiler.reset()
    gc.collect()
    assert a.tolist() == [3.0] * 100 and f(dlc.ones(100))[0].tolist() == [3.0] * 100
