# ruff: noqa: B006, B009, B018, F401, UP031, UP032  examples in all spellings, and names that they use
"""The C functions that captured programs may call: each line of the table, captured and replayed. And what hooks read,
change and refuse, construct by construct."""

import binascii
import bisect
import cmath
import collections
import functools
import heapq
import io
import itertools
import math
import operator
import os
import re
import struct
import sys
import time
import types
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque

import dlc
import pytest
from dlc._capture import known


class Base:
    def name(self):
        return "base"


class Child(Base):
    def name(self):
        return "child"


def done(change, o):
    change(o)
    return o


def changed(o):
    o.a = 1
    o.b = 2
    del o.a
    return o


def counter(n):
    total = 0
    for i in range(n):
        total += (yield i) or 0
    return total


def drive(generator):
    next(generator)
    return generator.send(5)


def thrown(generator):
    next(generator)
    try:
        generator.throw(ValueError("x"))
    except ValueError as error:
        return str(error)


def grads(mode):
    with mode:
        return dlc.is_grad_enabled()


def replayed(f, *args):
    """The results of three calls of compiled f, and how many of them ran without Python."""
    compiled = dlc.compile(f)
    before = dlc.compiler.compile_stats()["replays"]
    results = [compiled(*args) for _ in range(3)]
    return results, dlc.compiler.compile_stats()["replays"] - before, compiled


def why(compiled):
    text = compiled.explain()
    return text[text.index("calls run Python") :] if "calls run Python" in text else text


def plain(value):
    """Something to compare: tensors as lists, iterators and objects by their type."""
    if isinstance(value, dlc.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple, deque)):
        return [plain(v) for v in value] + ([value.maxlen] if isinstance(value, deque) else [])
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value if isinstance(value, (int, float, str, bytes, complex, set, type(None), deque)) else type(value)


out = io.StringIO()

LINES = [(kind, name, example) for kind, name, example in known.table() if kind != "input"]


def made(name):
    try:
        return known.resolve(name) is not None
    except (AttributeError, ImportError):
        return False


@pytest.mark.parametrize(("kind", "name", "example"), LINES, ids=[name for _, name, _ in LINES])
def test_known_function(tmp_path, kind, name, example):
    """The example gives in each call what it gives in plain Python, and the later calls run without Python."""
    if not made(name):
        pytest.skip("not in this interpreter")
    path = tmp_path / "example.py"
    path.write_text(f"def f(x):\n    return {example}\n")
    scope = dict(globals())
    exec(compile(path.read_text(), str(path), "exec"), scope)
    x = dlc.tensor([1.0, 2.0])
    expected = plain(scope["f"](x))
    results, replays, compiled = replayed(scope["f"], x)
    for result in results:
        assert plain(result) == expected
    assert replays == 2, why(compiled)


@pytest.mark.parametrize("name", [name for kind, name, _ in known.table() if kind == "input"])
def test_input_is_refused(name):
    assert made(name)


# --- programs: a case gives (f, calls, state). A call is a tuple of arguments, or a function that changes the state
# between two calls. Compiled and plain Python must give the same results and leave the same state.

CASES = []


def case(replays):
    """replays: how many of the calls run without Python."""

    def add(make):
        CASES.append(pytest.param(make, replays, id=make.__name__))
        return make

    return add


def vec(*values):
    return dlc.tensor([float(v) for v in values] or [1.0, 2.0])


def nothing():
    return None


@case(2)
def global_function_rebound():
    def change():
        globals()["act"] = lambda x: x + 2

    globals()["act"] = lambda x: x + 1
    return lambda x: act(x), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing  # noqa: F821


@case(4)
def class_attribute():
    class Cfg:
        k = 2

    def change():
        Cfg.k = 5

    return lambda x: x * Cfg.k, [(vec(),), (vec(),), change, (vec(),), (vec(),), (vec(),), (vec(),)], nothing


@case(4)
def class_attribute_on_a_base():
    class Base:
        pass

    class Cfg(Base):
        pass

    Base.k = 2

    def change():
        Cfg.k = 5

    return lambda x: x * Cfg.k, [(vec(),)] * 3 + [change] + [(vec(),)] * 3, nothing


@case(2)
def method_replaced():
    class A:
        def g(self, x):
            return x + 1

    a = A()

    def change():
        A.g = lambda self, x: x + 2

    return lambda x: a.g(x), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def method_shadowed_on_the_instance():
    class A:
        def g(self, x):
            return x + 1

    a = A()

    def change():
        a.g = lambda x: x + 2

    return lambda x: a.g(x), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def code_swapped():
    def g(x):
        return x + 1

    def h(x):
        return x + 2

    def change():
        g.__code__ = h.__code__

    return lambda x: g(x), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def default_changed():
    def g(x, k="a"):
        return x + len(k)

    def change():
        g.__defaults__ = ("abc",)

    return lambda x: g(x), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def default_mutated():
    def g(x, k=[1, 2]):
        return x + k[0]

    def change():
        g.__defaults__[0][0] = "a"

    return lambda x: len(g(x)), [(vec(),)] * 3 + [change] + [(vec(),)], nothing


@case(2)
def property_and_slot():
    class A:
        __slots__ = ("v",)

        @property
        def p(self):
            return self.v * 2

    a = A()
    a.v = "x"

    def change():
        a.v = "yz"

    return lambda x: x + len(a.p), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(3)
def attribute_counter():
    class A:
        n = 0

    a = A()

    def f(x):
        a.n += 1
        return x * a.n

    return f, [(vec(),)] * 6, lambda: a.n


@case(3)
def nonlocal_counter():
    n = 1

    def bump():
        nonlocal n
        n = n * 10

    def f(x):
        bump()
        return x + n

    return f, [(vec(),)] * 5, lambda: n


@case(4)
def dict_counter():
    d = {}

    def f(x):
        d["n"] = d.get("n", 0) + 1
        return x * d["n"]

    return f, [(vec(),)] * 6, lambda: d


@case(4)
def list_history():
    hist = []

    def f(x):
        hist.append(float(x.shape[0]))
        return x.sum() + len(hist)

    return f, [(vec(),)] * 6, lambda: hist


@case(2)
def list_effects_in_order():
    log = ["start"]

    def f(x):
        log.append("a")
        log.extend(["b", "c"])
        log.pop()
        log.insert(0, "d")
        log[1] = "e"
        del log[:1]
        return x

    def reset():
        log[:] = ["start"]

    return f, [(vec(),), reset, (vec(),), reset, (vec(),)], lambda: log


@case(2)
def set_and_dict_effects():
    s, d = {1, 2}, {"a": 1}

    def f(x):
        s.add(3)
        s.discard(1)
        d.update(b=2)
        d.setdefault("c", 3)
        d.pop("a")
        return x * len(s)

    def reset():
        s.clear()
        s.update([1, 2])
        d.clear()
        d.update(a=1)

    return f, [(vec(),), reset, (vec(),), reset, (vec(),)], lambda: (sorted(s), d)


@case(2)
def try_finally_effect():
    ev = []

    def f(x):
        try:
            return x * 2
        finally:
            ev.append("closed")

    return f, [(vec(),)] * 3, lambda: ev


@case(2)
def exceptions_caught():
    d = {}

    class A:
        pass

    a = A()

    def f(x):
        try:
            d["k"]
        except KeyError:
            x = x + 1
        try:
            a.missing
        except AttributeError:
            x = x + 1
        try:
            raise ValueError("v")
        except ValueError as error:
            return x, str(error)

    def change():
        d["k"] = 1

    return f, [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def exception_leaves():
    def f(x):
        if x.shape[0] < 2:
            raise ValueError("too short")
        return x + 1

    return f, [(vec(),), (vec(),), (vec(1),), (vec(),)], nothing


@case(2)
def context_managers():
    import contextlib

    log = []

    @contextlib.contextmanager
    def noted(name):
        log.append(name)
        try:
            yield len(name)
        finally:
            log.append("end")

    class Quiet:
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, kind, error, trace):
            log.append(kind is not None)
            return True

    def f(x):
        with noted("ab") as n, Quiet():
            x = x * n
            raise KeyError("gone")
        return x

    return f, [(vec(),)] * 3, lambda: log


@case(2)
def generators():
    def squares(n):
        for i in range(n):
            yield i * i
        return "end"

    def outer():
        end = yield from squares(3)
        yield len(end)

    def f(x):
        return x * sum(outer()), [i for i in squares(4) if i], max(squares(3)), {i: j for i, j in enumerate(squares(2))}

    return f, [(vec(),)] * 3, nothing


@case(2)
def operators_of_a_class():
    class V:
        def __init__(self, a):
            self.a = a

        def __add__(self, o):
            return V(self.a + (o.a if isinstance(o, V) else o))

        def __radd__(self, o):
            return V(o + self.a)

        def __iadd__(self, o):
            self.a = self.a + o
            return self

        def __neg__(self):
            return V(-self.a)

        def __eq__(self, o):
            return isinstance(o, V)

        def __lt__(self, o):
            return True

        def __getitem__(self, i):
            return self.a[i]

        def __len__(self):
            return 7

        def __iter__(self):
            return iter([self.a, 1])

        def __contains__(self, o):
            return o == 5

        def __call__(self, x):
            return x * self.a

    outside = V(vec(3, 4))

    def f(x):
        v = V(x) + outside + 1
        v += 2
        w = 5 + -v
        a, b = w
        return (
            w.a,
            v[0],
            len(v),
            a * b,
            v == outside,
            v != outside,
            v < w,
            5 in v,
            6 in v,
            outside(x),
            v is outside,
            bool(v),
        )

    return f, [(vec(),)] * 3, nothing


@case(2)
def attributes_by_getattr():
    class A:
        def __init__(self):
            self.known = {"k": 3}

        def __getattr__(self, name):
            return self.known[name]

        def __setattr__(self, name, value):
            object.__setattr__(self, "set_" + name if name != "known" else name, value)

    a = A()

    def f(x):
        a.y = 5
        return x * a.k + getattr(a, "set_y") + hasattr(a, "known")

    return f, [(vec(),)] * 3, lambda: sorted(vars(a))


@case(2)
def inheritance():
    class A:
        def __init__(self, k):
            self.k = k

        def g(self, x):
            return x + self.k

        @classmethod
        def make(cls, k):
            return cls(k)

        @staticmethod
        def twice(x):
            return x * 2

    class B(A):
        def __init__(self, k):
            super().__init__(k + 1)

        def g(self, x):
            return super().g(x) * 2

    b = B(1)

    def f(x):
        return b.g(x), B.make(3).g(x), b.twice(x), type(b) is B, isinstance(b, A)

    return f, [(vec(),)] * 3, nothing


@case(2)
def dataclasses_and_tuples():
    import dataclasses
    from collections import namedtuple

    @dataclasses.dataclass
    class P:
        a: int
        b: float = 2.0
        c: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            self.d = self.a + 1

    @dataclasses.dataclass(frozen=True, order=True)
    class Q:
        a: int
        b: str = "q"

    N = namedtuple("N", "u v", defaults=[4])
    outside = P(5, c=[1])
    pair = N(1)

    def f(x):
        p = P(1)
        p.c.append(3)
        n = N(x)._replace(v=3)
        u, v = pair
        return (
            x * p.b + p.d + outside.a,
            p == P(1, 2.0, [3]),
            repr(p),
            Q(1) < Q(2),
            repr(Q(1)),
            n.u * n.v,
            pair.u + v,
            len(outside.c),
        )

    return f, [(vec(),)] * 3, nothing


@case(2)
def enums():
    import enum

    class Color(enum.Enum):
        R = 1
        G = 2

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    def f(x, c):
        table = {Color.R: 1, Color.G: 2}
        return x * c.value, c is Color.G, c.name, Color(1).name, Color["G"].value, table[c], Level.HIGH.value

    return f, [(vec(), Color.G)] * 3, nothing


@case(2)
def modules():
    model = dlc.nn.Sequential(dlc.nn.Linear(2, 2), dlc.nn.ReLU(), dlc.nn.ModuleList([dlc.nn.Linear(2, 2)])[0])
    with dlc.no_grad():
        for k, p in enumerate(model.parameters()):
            p.fill_(k + 1.0)

    def change():
        model.eval()

    def f(x):
        with dlc.no_grad():
            return model(x) * (2 if model.training else 3), [n for n, _ in model.named_children()]

    return f, [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def module_with_state():
    class M(dlc.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", dlc.zeros(1))
            self.last = None

        def forward(self, x):
            self.seen.add_(1)
            self.last = x.detach() * 2
            return x * self.seen

    m = M()
    return lambda x: m(x), [(vec(),)] * 3, lambda: (m.seen, m.last)


@case(2)
def hooks_of_a_module():
    m = dlc.nn.Linear(1, 1, bias=False)
    m.weight.data.fill_(2.0)
    m.weight.requires_grad_(False)
    handles = []

    def add():
        handles.append(m.register_forward_hook(lambda m, i, o: o + 100))

    def remove():
        handles.pop().remove()

    x = vec(1)
    return lambda x: m(x), [(x,), (x,), add, (x,), remove, (x,)], nothing


@case(2)
def module_made_inside():
    def f(x):
        m = dlc.nn.Identity()
        m.extra = dlc.nn.Parameter(x.detach() * 2, requires_grad=False)
        return m(x) + m.extra, [n for n, _ in m.named_parameters()]

    return f, [(vec(),)] * 3, nothing


@case(3)
def dict_order():
    d = OrderedDict(a=1, b=2, c=3)

    def f(x):
        d.move_to_end("a")
        return x * d["b"]

    def reset():
        d.move_to_end("c")
        d.move_to_end("a", last=False)
        d.move_to_end("b")
        d.move_to_end("c")

    return f, [(vec(),), reset, (vec(),), reset, (vec(),), (vec(),)], lambda: list(d)


@case(2)
def keys_in_order():
    d = {"a": 1, "b": 2}

    def change():
        d["c"] = 3

    return lambda x: (x, "".join(d), [*d.items()]), [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(3)
def none_number_tensor():
    def f(x, scale=1.0, *rest, bias=None, **kw):
        y = x * scale + sum(rest)
        return (y if bias is None else y + bias, None if bias is None else bias * 2, sorted(kw))

    x = vec()
    return f, [(x,), (x, 3.0), (x, 3.0, 4.0), (x,), (x, 3.0), (x, 3.0, 4.0), (x, x)], nothing


@case(4)
def float_argument():
    return lambda x, s=1.0: x * s, [(vec(), 0.5 + i) for i in range(6)], nothing


@case(4)
def branch_on_data():
    return lambda x: x * 2 if x.sum() > 0 else x - 1, [(vec(v),) for v in (1, -1, 2, -3, 0, 5)], nothing


@case(2)
def shapes():
    f = lambda x: -x if x.shape != (2, 3) else x * 10  # noqa: E731
    return f, [(dlc.ones(4, 3),), (dlc.ones(2, 3),), (dlc.ones(4, 3),), (dlc.ones(2, 3),)], nothing


@case(0)
def iterator_from_outside():
    it = iter(range(100))
    return lambda x: x * next(it), [(vec(),)] * 3, nothing


@case(1)
def identity_of_arguments():
    def f(x, a, b):
        return x, a is b, a in [b], [a].index(a)

    a, b = [1], [2]
    return f, [(vec(), a, b), (vec(), a, b), (vec(), a, a), (vec(), b, a)], nothing


@case(2)
def parameters_of_a_call():
    def g(a, /, b=2, *args, c, d=4, **kw):
        return a + b + sum(args) + c + d + sum(kw.values())

    def f(x):
        extra = {"e": 5}
        return g(x, c=3), g(x, 1, 2, c=3, **extra), g(*[x, 1], **{"c": 1, "d": 2})

    return f, [(vec(),)] * 3, nothing


@case(2)
def globals_written():
    globals()["written"] = 1.5

    def f(x):
        global written
        written = written * 2
        return x + written

    return f, [(vec(),)] * 4, lambda: written


@case(2)
def partials_and_callables():
    add = functools.partial(lambda a, b, x: x * a + b, 3, b=1)

    class Twice:
        def __call__(self, x):
            return x * 2

    twice = Twice()
    return lambda x: (add(x=x), twice(x), operator.attrgetter("shape")(x)), [(vec(),)] * 3, nothing


@case(2)
def closures_returned():
    def f(x):
        k = [1, 2]

        def g(y):
            return y * k[1] + x

        return g

    return lambda x: f(x)(x) + f(x)(vec()), [(vec(),)] * 3, nothing


@case(2)
def text():
    def f(x):
        return f"{x.shape[0]:03d} {x.dtype} {'a'!r} {[1, 2.5]}", "%s-%d" % ("a", 3), "{}".format(2), str(x.ndim)

    return f, [(vec(),)] * 3, nothing


@case(2)
def unpacking():
    outside = [1, (2, 3), 4]

    def f(x):
        a, (b, c), *rest = outside
        first, *_ = x, 1, 2
        (p, q), r = [x, x], 5
        return x * (a + b + c), rest, first, p + q * r, [*outside[:1], *"ab"], {**{"k": 1}, "j": 2}

    def change():
        outside.append(5)

    return f, [(vec(),)] * 2 + [change] + [(vec(),)] * 2, nothing


@case(2)
def loops():
    xs = [vec(), vec(3, 4)]

    def f(x):
        out = []
        for i, t in enumerate(xs):
            out.append(t * i)
        k = 0
        while k < 3:
            k += 1
            if k == 2:
                continue
            x = x + k
        else:
            x = x * 2
        for row in dlc.stack(out):
            x = x + row
        return x, list(zip(xs, out))[1][1], [t.shape for t in reversed(xs)]

    return f, [(vec(),)] * 3, nothing


@case(4)
def training():
    m = dlc.nn.Linear(2, 1)
    with dlc.no_grad():
        for p in m.parameters():
            p.fill_(0.5)
    opt = dlc.optim.Adam(m.parameters(), lr=0.0078125)

    def f(x):
        opt.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.detach()

    return f, [(vec(),)] * 5, lambda: [p for p in m.parameters()]


@case(4)
def learning_rate_changes():
    m = dlc.nn.Linear(2, 1)
    with dlc.no_grad():
        for p in m.parameters():
            p.fill_(0.5)
    opt = dlc.optim.SGD(m.parameters(), lr=0.5)

    def f(x):
        loss = (m(x) ** 2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        opt.param_groups[0]["lr"] *= 0.5
        return loss.detach()

    return f, [(vec(),)] * 6, lambda: [p for p in m.parameters()]


@case(1)
def subclasses_of_containers():
    class Named(dict):
        def __missing__(self, key):
            return key * 2

        def __setitem__(self, key, value):
            super().__setitem__(key, value + 1)

    class Stack(list):
        def top(self):
            return self[-1]

    class Pair(tuple):
        def __getitem__(self, i):
            return super().__getitem__(i) * 3

    d, s, p = Named(a=1), Stack([1, 2]), Pair((1, 2))

    def f(x):
        d["b"] = 5
        inside = Named()
        inside["k"] = 1
        return x * d["a"], d["zz"], dict(d), s.top(), len(s), [*s], p[0], list(p), inside["k"], "a" in d

    return f, [(vec(),)] * 3, lambda: d


@case(2)
def class_attribute_set_inside():
    class Cfg:
        name = "a"

    def f(x):
        Cfg.name = Cfg.name[-1] + "b"
        return x + len(Cfg.name)

    def reset():
        Cfg.name = "a"

    return f, [(vec(),), reset, (vec(),), reset, (vec(),)], lambda: Cfg.name


@case(0)
def values_read_by_c_code():
    def f(x):
        return [i for i in range(5)][x.sum().int()], math.floor(x.sum())

    return f, [(vec(),), (vec(1, 3),), (vec(),)], nothing


@case(2)
def small_lists_of_values():
    def f(x):
        a, b = x.tolist()
        return x + a, b, float(x[1])

    return f, [(vec(),), (vec(3, 4),), (vec(5, 7),)], nothing


@case(2)
def user_iterators():
    class Count:
        def __init__(self, n):
            self.n = n
            self.i = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.i == self.n:
                raise StopIteration
            self.i += 1
            return self.i

    def f(x):
        first, *rest = Count(3)
        return [x * i for i in Count(2)], sum(Count(4)), next(Count(1)), rest, list(zip(Count(2), "ab")), 2 in Count(3)

    return f, [(vec(),)] * 3, nothing


@case(2)
def deferred_output_in_order():
    import contextlib
    import io

    out = io.StringIO()

    def f(x):
        print("shape", x.shape[0], [1, "a"])
        print("x", x)
        return x + 1

    def g(x):
        with contextlib.redirect_stdout(out):
            return compiled(x)

    compiled = dlc.compile(f)
    return g, [(vec(),), (vec(),), (vec(3, 4),)], lambda: out.getvalue()


@case(2)
def getattr_of_a_module():
    def f(x):
        return getattr(dlc.nn.functional, "relu")(x), math.pi, dlc.float32, dlc.nn.Linear.__name__

    return f, [(vec(),)] * 3, nothing


@case(2)
def attribute_deleted():
    class A:
        pass

    a = A()
    a.t = 1

    def f(x):
        if hasattr(a, "t"):
            del a.t
            return x + 1
        a.t = 1
        return x

    return f, [(vec(),)] * 4, lambda: sorted(vars(a))


@case(2)
def instance_dictionary():
    class A:
        def __init__(self):
            self.k = 2

    a = A()

    def f(x):
        d = a.__dict__
        d["n"] = 3
        a.m = d["k"] + 1
        return x * d["n"] + d["m"] + a.n + d.get("q", 1), "k" in d, vars(a) is d

    return f, [(vec(),)] * 3, lambda: dict(vars(a))


@case(3)
def class_counter_twice_in_a_call():
    class Base:
        made = 0

    class Acc(Base):
        pass

    def bump():
        Base.made += 1

    def f(x):
        bump()
        bump()
        Acc.own = Acc.made * 2
        return x * Acc.made, Acc.own, Acc().made

    return f, [(vec(),)] * 5, lambda: (Base.made, Acc.own)


@case(2)
def operators_of_a_tensor_class():
    class Loud(dlc.Tensor):
        def __add__(self, other):
            return 5

        def __getitem__(self, i):
            return 7

        def __eq__(self, other):
            return 9

        __hash__ = dlc.Tensor.__hash__

    t = dlc.Tensor._make_subclass(Loud, vec())

    def f(x):
        return x * (t + x) * t[0], t == x, t * 2

    return f, [(vec(),)] * 3, nothing


@case(1)
def slices_and_ranges_from_outside():
    def f(x, s, r):
        return x[s], [1, 2, 3][s], list(r), 2 in r, r == range(3), len(r)

    calls = [(vec(1, 2, 3), slice(0, 2), range(3))] * 2
    return f, calls + [(vec(1, 2, 3), slice(1, 2), range(3)), (vec(1, 2, 3), slice(0, 2), range(1))], nothing


@case(2)
def names_imported_inside():
    import math as module

    def f(x):
        import os.path as path
        from math import tau

        return x * tau, path.sep

    def change():
        module.tau = 3.0

    def back():
        module.tau = 2 * math.pi

    return f, [(vec(),)] * 2 + [change] + [(vec(),)] * 2 + [back], nothing


@case(3)
def deques():
    recent = deque([1, 2], maxlen=3)

    def f(x):
        size = len(recent)
        recent.append(x.ndim)
        mine = deque([x, 1], maxlen=4)
        mine.append(2)
        return mine, size, deque("ab")

    return f, [(vec(),)] * 5, lambda: recent


@case(3)
def numbers_that_vary_in_closures():
    class Box:
        n = 1

    box = Box()
    kept = []

    def f(x):
        n = box.n * 2
        box.n += 1

        def g(y):
            return y * n, type(n) is int, y.reshape(n - n + 2)

        kept.append(g)
        return g

    def call():
        kept.append(kept[-1](vec())[0])

    return f, [(vec(),), call] * 6, lambda: [k if isinstance(k, dlc.Tensor) else k(vec()) for k in kept]


@case(0)
def keys_made_of_numbers_that_vary():
    cache = {}
    seen = []

    def f(x, i):
        k = (i % 2, "a")
        if k not in cache:
            cache[k] = x * i
        seen.append((i % 2, "b"))
        return cache[k] + 1, (i % 2, "b") in seen[:1], i % 2 in {0}

    return f, [(vec(), i) for i in range(8)], lambda: (sorted(cache), seen, [type(s[0]) for s in seen])


def outcome(f, call):
    try:
        return plain(f(*call))
    except Exception as error:
        return type(error), str(error)


def same(a, b):
    """Equal, floats up to the rounding of another order of operations."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-6)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def run(f, calls):
    results = []
    for call in calls:
        if isinstance(call, tuple):
            results.append(outcome(f, call))
        else:
            call()
    return results


@pytest.mark.parametrize(("make", "replays"), CASES)
def test_program(make, replays):
    f, calls, state = make()
    expected = run(f, calls), plain(state())
    f, calls, state = make()
    compiled = dlc.compile(f)
    before = dlc.compiler.compile_stats()["replays"]
    results = run(compiled, calls)
    assert same(results, expected[0]), f"{results}\n{expected[0]}\n{compiled.explain()}"
    assert same(plain(state()), expected[1])
    assert dlc.compiler.compile_stats()["replays"] - before == replays, why(compiled)


def test_warnings_name_the_line():
    """A replayed call warns from the line that Python warns from."""

    def f(x):
        warnings.warn("first")  # noqa: B028
        warnings.warn("second", DeprecationWarning)  # noqa: B028
        return x + 1

    compiled = dlc.compile(f)
    seen = []
    for function in (f, compiled, compiled, compiled):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(vec())
        seen.append([(str(w.message), w.category, w.filename, w.lineno) for w in caught])
    assert len(seen[0]) == 2
    assert seen[1:] == [seen[0]] * 3
    assert "run Python" not in compiled.explain()
