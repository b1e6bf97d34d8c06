"""What a replayed function has read is guarded: expressions over all kinds of state are called until they replay, then
one thing after the other is changed and put back, and each call must give what plain Python gives.
"""

# The expressions use all of them.
# ruff: noqa: F401

import bisect
import collections
import collections.abc as cabc
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import linecache
import math
import numbers
import operator
import os
import re
import string
import sys
import textwrap
import types
import typing

import dlc
import pytest
from dlc import nn

x = dlc.tensor([1.0, 2.0, 3.0])
G, S, FS, L, T, text = {"a": 1, "b": [1, 2]}, {1, 2, 3}, frozenset("ab"), [3, 1, 2], (1, 2, "x"), "hello world"


def helper(a, b=2):
    return a * b


class E(enum.Enum):
    A = 1
    B = 2


class IE(enum.IntEnum):
    A = 1
    B = 2


class FL(enum.Flag):
    A = 1
    B = 2


NT = collections.namedtuple("NT", "p q")


@dataclasses.dataclass
class DC:
    a: int = 1
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class FD:
    a: int = 1
    b: float = 2.0


class P:
    __slots__ = ("u", "v")

    def __init__(self):
        self.u, self.v = 1, 2


class CP:
    @functools.cached_property
    def v(self):
        return 5

    @property
    def w(self):
        return 6


class AttrDict(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Sub(list):
    pass


nt, dc, fd, pt, cp, ad, sub = NT(1, 2), DC(), FD(), P(), CP(), AttrDict(a=2), Sub([4, 5])
sn, ud, cm = types.SimpleNamespace(a=3, b="x"), collections.UserDict(a=1), collections.ChainMap({"a": 1}, {"b": 2})
cnt, od, dd = collections.Counter("abca"), collections.OrderedDict(a=1, b=2), collections.defaultdict(list, {1: [2]})
pat, partial = re.compile(r"(\w)o"), functools.partial(helper, b=4)
lin, seq = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU())

EXPRESSIONS = """
x+1
x*G['a']
x+len(L)+sum(L)+max(L)+min(L)
x*(2 in S)
x*S.__contains__(2)
x*FS.__contains__('a')
x*G.__contains__('a')
x*sum(map(G.get,['a']))
x*sum(map(G.__getitem__,['a']))
x*sum(map(L.__getitem__,[0,1]))
x*len(helper.__name__)
x*len(math.sin.__name__)
x*len(len.__qualname__)
x*len(helper.__qualname__+helper.__module__)
x*len(type(x).__name__)
x*len(DC.__name__)
x*len(pat.sub('u',text))
x*len(re.sub('o','u',text))
x*bool(re.match('h',text))
x*len(re.findall('o',text))
x*len(re.split(' ',text))
x*isinstance(L,cabc.Sequence)
x*isinstance(L,cabc.Iterable)
x*isinstance(3,numbers.Number)
x*isinstance(3.0,numbers.Real)
x*isinstance(G,cabc.Mapping)
x*isinstance(G,(dict,cabc.Mapping))
x*isinstance(x,dlc.Tensor)
x*isinstance(helper,cabc.Callable)
x*isinstance(L,typing.Sequence)
x*callable(helper)
x*E.A.value
x*(E.A is E.A)
x*(E(1) is E.A)
x*(E['A'].value)
x*IE.A
x*(IE.A+1)
x*len(list(E))
x*len([e.name for e in E])
x*(FL.A|FL.B).value
x*(FL.A in FL.A)
x*nt.p
x*nt[1]
x*len(nt._fields)
x*nt._replace(p=3).p
x*nt._asdict()['p']
x*dc.a
x*dataclasses.replace(dc,a=3).a
x*len(dataclasses.asdict(dc))
x*len(dataclasses.astuple(fd))
x*len(dataclasses.fields(dc))
x*dataclasses.is_dataclass(dc)
x*len(repr(fd))
x*(fd==FD())
x*pt.u
x*sn.a
x*ud['a']
x*cm['b']
x*cnt['a']
x*len(cnt.most_common(1))
x*len(collections.Counter('aab'))
x*od['a']
x*len(list(od.items()))
x*dd[1][0]
x*cp.v
x*cp.w
x*partial(2)
x*functools.reduce(operator.mul,L,1)
x*sum(itertools.accumulate(L))
x*len(list(itertools.product(L,L)))
x*len(list(itertools.groupby(L)))
x*sum(a*b for a,b in zip(L,L))
x*sorted(L)[0]
x*sorted(L,key=lambda v:-v)[0]
x*sorted(G)[0].count('a')
x*L.index(1)
x*heapq.nlargest(1,L)[0]
x*heapq.heappop([1,2,3])
x*bisect.bisect([1,2,3],2)
x*copy.copy(L)[0]
x*copy.deepcopy(G)['a']
x*math.prod(L)
x*math.cbrt(8.0)
x*math.exp2(3.0)
x*int('3')
x*float('2.5')
x*round(2.567,1)
x*divmod(7,2)[0]
x*abs(-3)
x*int.from_bytes(b'a','big')
x*len('%s-%d'%('a',3))
x*len('{:>5}'.format(3))
x*len(format(3,'05d'))
x*len(f'{3.14159:.2f}')
x*len(text.title().split())
x*len(' '.join(reversed(text.split())))
x*len(str(L))
x*len(repr(G))
x*len(str(x.shape))
x*len(str(x.dtype))
x*len(f'{x.shape} {x.dtype} {x.device}')
x*len(textwrap.fill(text,5))
x*len(os.path.join('a','b'))
x*len(os.path.basename('a/b'))
x*len(os.environ.get('NOPE','abc'))
x*len(os.getenv('HOME'))
x*('HOME' in os.environ)
x*len(helper.__code__.co_varnames)
x*len(helper.__defaults__)
x*getattr(dc,'a')
x*getattr(dc,'zz',4)
x*hasattr(dc,'a')
x*len(vars(dc))
x*len(dc.__dict__)
x*type(dc)().a
x*dc.__class__().a
x*(type(dc) is DC)
x*len(DC.__mro__)
x*len(DC.__annotations__)
x*typing.cast(int,3)
x*x.ndim
x*x.size(0)
x*x.shape[-1]
x*x.numel()
x*x.dtype.itemsize
x.to(x.dtype)
x.to(dlc.float64)
x.reshape(-1,1)
x.view(1,3).T
x[None]
x[...,0]
x[1:]
dlc.cat([x,x])
dlc.stack([x]*2)
dlc.where(x>1,x,-x)
dlc.zeros_like(x)
dlc.arange(3)+x
dlc.full((3,),2.0)+x
lin(x)
seq(x)
[m(x) for m in seq]
len(list(seq.parameters()))*x
sum(p.numel() for p in lin.parameters())*x
len(list(seq.named_modules()))*x
len(seq.state_dict())*x
lin.weight.shape[0]*x
lin.training*x
nn.functional.relu(x)
x*len(string.ascii_letters)
x*bool(any(v>2 for v in L))
x*all(map(lambda v:v>0,L))
x*next(iter(L))
x*next((v for v in L if v>2),0)
x*list(filter(None,[0,1]))[0]
x*dict(zip('ab',L))['a']
x*{k:v for k,v in G.items() if k=='a'}['a']
x*{**G}['a']
x*[*L,4][-1]
x*max(L,key=lambda v:-v)
x*max(G,key=len).count('a')
x*min(1,2,3)
x*len(set(L)|{9})
x*len(set(L)&S)
x*len(S-{1})
x*len(S.union(L))
x*sum(range(4))
x*list(range(4))[2]
x*len(bytes(3))
x*slice(1,3).start
x[slice(0,2)]
x*id(x)//id(x)
x*hash('a')//hash('a')
x*complex(1,2).real
x*(1<2<3)
x*bin(5).count('1')
x*len(sys.argv)
x*sys.maxsize//sys.maxsize
x*len(sys.platform)
x*sys.version_info[0]
x*len(__name__)
x*operator.itemgetter('a')(G)
x*operator.attrgetter('a')(dc)
x*ad.a
x*ad['a']
x*sub[0]
x*sum(sub)
""".strip().splitlines()


class Absent:
    pass


def value(name, new):
    """Binds a global of this module to something else."""

    def change():
        old = globals().get(name, Absent)
        globals()[name] = new
        return lambda: globals().pop(name) if old is Absent else globals().__setitem__(name, old)

    return change


def item(container, key, new):
    def change():
        try:
            old = container[key]
        except (KeyError, IndexError):
            old = Absent
        container[key] = new
        return lambda: container.__delitem__(key) if old is Absent else container.__setitem__(key, old)

    return change


def attribute(holder, name, new):
    def change():
        own = name in getattr(holder, "__dict__", ()) or isinstance(holder, (type, types.FunctionType, P))
        old = getattr(holder, name, Absent)
        setattr(holder, name, new)
        return lambda: setattr(holder, name, old) if own and old is not Absent else delattr(holder, name)

    return change


def called(do, undo):
    def change():
        do()
        return undo

    return change


def restored_set():
    S.clear()
    S.update({1, 2, 3})


CHANGES = {
    "item of a dict": item(G, "a", 7),
    "key of a dict": item(G, "zz", 1),
    "item of a list": item(L, 0, 9),
    "length of a list": called(lambda: L.append(11), L.pop),
    "item more in a set": called(lambda: S.add(10), restored_set),
    "item less in a set": called(lambda: S.discard(2), restored_set),
    "text": value("text", "hallo  welt o"),
    "attribute": attribute(dc, "a", 5),
    "another attribute": attribute(dc, "zz", 9),
    "class attribute": attribute(DC, "a", 8),
    "name of a class": attribute(DC, "__name__", "LongerName"),
    "slot": attribute(pt, "u", 6),
    "namespace": attribute(sn, "a", 7),
    "UserDict": item(ud, "a", 4),
    "ChainMap": item(cm.maps[1], "b", 4),
    "Counter": item(cnt, "a", 9),
    "OrderedDict": item(od, "a", 6),
    "OrderedDict's keys": item(od, "c", 6),
    "defaultdict": item(dd, 1, [7]),
    "AttrDict": item(ad, "a", 5),
    "subclass of list": item(sub, 0, 7),
    "name of a function": attribute(helper, "__name__", "much_longer"),
    "qualified name": attribute(helper, "__qualname__", "much_longer"),
    "defaults": attribute(helper, "__defaults__", (9, 8)),
    "code": attribute(helper, "__code__", (lambda a, b: a - b).__code__),
    "function": value("helper", lambda a, b=3: a * b * 2),
    "namedtuple": value("nt", NT(5, 6)),
    "frozen dataclass": value("fd", FD(3, 4.0)),
    "pattern": value("pat", re.compile("l")),
    "mode of a module": called(lambda: lin.train(False), lin.train),
    "module": value("lin", nn.Linear(3, 5)),
    "child of a module": called(lambda: seq.append(nn.ReLU()), lambda: seq.__delitem__(-1)),
    "os.environ": item(os.environ, "NOPE", "q"),
    "builtin len": value("len", lambda o: 42),
    "builtin isinstance": value("isinstance", lambda a, b: 5),
    "builtin max": value("max", lambda *a, **k: 3),
    "property": attribute(CP, "w", property(lambda self: 11)),
    "attribute before a property of the class": attribute(cp, "v", 12),
    "sys.argv": called(lambda: sys.argv.append("q"), sys.argv.pop),
    "partial": value("partial", functools.partial(helper, b=9)),
    "tuple": value("T", (1,)),
    "frozenset": value("FS", frozenset("xyz")),
    "function of a module": attribute(operator, "mul", operator.add),
    "text of a module": attribute(string, "ascii_letters", "ab"),
    "__eq__ of a class": attribute(FD, "__eq__", lambda a, b: False),
    "tensor": called(lambda: x.add_(1), lambda: x.sub_(1)),
}


def function(number, expression):
    """A function of the expression whose source can be found."""
    source, name = f"def f(x):\n    return {expression}\n", f"<expression {number}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {}
    exec(compile(source, name, "exec"), globals(), names)
    return names["f"]


def outcome(f):
    try:
        return "result", str(f(x))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("part", range(4))
def test_state_is_guarded(part):
    for number, expression in list(enumerate(EXPRESSIONS))[part::4]:
        plain = function(number, expression)
        compiled = dlc.compile(plain)
        dlc.reset_compile_stats()
        for _ in range(3):
            assert outcome(compiled) == outcome(plain), expression
        assert dlc.compile_stats()["replays"] >= 1, (expression, compiled.explain())
        for name, change in CHANGES.items():
            undo = change()
            try:
                for _ in range(2):
                    assert outcome(compiled) == outcome(plain), (expression, name)
            finally:
                undo()
            assert outcome(compiled) == outcome(plain), (expression, name, "put back")


def test_stores_through_methods_of_c():
    config, history, heap = AttrDict(), collections.deque(maxlen=3), []

    @dlc.compile
    def step(v):
        config.n = v.shape[0]
        history.append(v.shape[0])
        heapq.heappush(heap, 0.5)
        return v * config.n

    dlc.reset_compile_stats()
    for calls in range(1, 6):
        config.clear()
        heap[:] = [1.0, 2.0]
        assert step(dlc.ones(2)).tolist() == [2, 2] and dict(config) == {"n": 2} and not vars(config)
        assert list(history) == [2] * min(calls, 3) and heap == [0.5, 2.0, 1.0]
    assert dlc.compile_stats()["replays"] >= 1


class Counted:
    count = 0


class Missing(dict):
    def __missing__(self, key):
        self[key] = 5
        return 5

    def __setitem__(self, key, new):
        dict.__setitem__(self, key, new)


def counted(state, k):
    Counted.count += 1
    Counted.count += 1
    return Counted.count


def length_after_clear(state, k):
    state["list"].clear()
    state["dict"].clear()
    return len(state["list"]) + len(state["dict"])


def length_after_store(state, k):
    state["dict"][str(k)] = 1
    state["set"].add(k % 3)
    return len(state["dict"]), len(state["set"])


def slice_of_numbers(state, k):
    state["list"][1:] = [k]
    state["list"].append(state["list"].count(1))
    return len(state["list"])


def popped(state, k):
    state["dict"]["b"] = k
    state["dict"].popitem()
    return state["dict"].get("b", "gone")


def text_of_an_exception(state, k):
    try:
        raise ValueError(k + state["list"][0])
    except ValueError as error:
        return str(error)


def set_of_numbers(state, k):
    state["set"].update([(k + state["list"][0]) % 5])
    state["set"].discard((k + 1) % 5)
    return sorted(state["set"])


def kept_after_giving_up(state, k):
    number = state["list"][0] + k
    globals_of = state["missing"].__reduce__()  # nothing that is understood
    state["kept"] = [number, {"n": number}]
    return state["missing"][number], type(globals_of).__name__


def defaults_of_a_function(state, k):
    helper.__defaults__ = (state["list"][0] + k,)
    return helper(2)


def kept_before_raising(state, k):
    state["kept"] = [state["list"][0] + k]
    raise KeyError(k)


def strange(o):
    """Types of numbers and texts inside that are no plain ones."""
    if isinstance(o, dict):
        o = [*o, *o.values()]
    if isinstance(o, (list, tuple, set)):
        return [found for each in o for found in strange(each)]
    return [] if type(o) in (int, float, str, type(None)) else [type(o)]


@pytest.mark.parametrize(
    "program",
    [
        counted,
        length_after_clear,
        length_after_store,
        slice_of_numbers,
        popped,
        text_of_an_exception,
        set_of_numbers,
        kept_after_giving_up,
        kept_before_raising,
        defaults_of_a_function,
    ],
)
def test_numbers_that_vary(program):
    def run(f):
        state = {"list": [3, 1, 2], "dict": {"a": 1}, "set": {1, 2}, "missing": Missing(), "kept": None}
        Counted.count = 0
        results = []
        for call in range(12):
            k = (0, 1, 1, 2, 5, 1)[call % 6]
            state["list"][:] = [call % 4, *range(call % 3)]
            state["dict"].pop("a", None) if call % 5 == 4 else state["dict"].update(a=call)
            try:
                results.append(f(x, state, k))
            except KeyError as error:
                results.append(repr(error))
            assert not strange(state) and type(helper.__defaults__[0]) is int
            results.append(repr([state["list"], state["dict"], sorted(state["set"]), state["missing"], state["kept"]]))
        return [str(each) for each in results]

    def function(v, state, k):
        return program(state, k), v * 2

    defaults = helper.__defaults__
    try:
        assert run(dlc.compile(function)) == run(function)
    finally:
        helper.__defaults__ = defaults
