"""Everything a function can read, one case each: a function, how to change what it reads, and a change beside it.

`Case.change(i)` changes what the function reads to its i-th state, the same for the same i; `unrelated(i)` changes
something near it that the function doesn't read. Kept apart from the test: pytest rewrites the code of test modules.
"""

import collections
import dataclasses
import enum
import functools
import os
import types

import dlc
from dlc import nn

CASES = []


@dataclasses.dataclass
class Case:
    f: object
    change: object
    unrelated: object = None
    args: object = staticmethod(lambda: (dlc.tensor([1.0, 2.0, -3.0]),))
    restore: object = staticmethod(lambda: None)


def case(make):
    CASES.append(make)
    return make


G_NUMBER, G_OTHER, G_TENSOR = 2.0, 0, dlc.tensor([1.0, 2.0, 3.0])
G_TABLE = {"k": 2.0, "other": 1.0}


def plus(x):
    return x + 1


def times(x):
    return x * 3


g_act = plus


# Names: cells, globals, builtins, defaults.


@case
def closure_cell():
    k, other = 2.0, 0

    def f(x):
        return x * k + 1

    def change(i):
        nonlocal k
        k = 2.0 + i

    def unrelated(i):
        nonlocal other
        other = i

    return Case(f, change, unrelated)


@case
def closure_cell_of_a_callee():
    k = 2.0

    def inner(x):
        return x * k

    def f(x):
        return inner(x) + 1

    def change(i):
        nonlocal k
        k = [2.0, -1.0, 0.5][i % 3]

    return Case(f, change)


@case
def closure_list_length():
    items = []

    def f(x):
        return x + len(items)

    return Case(f, lambda i: items.append(i))


@case
def global_number():
    def f(x):
        return x * G_NUMBER + 1

    def change(i):
        global G_NUMBER
        G_NUMBER = 2.0 + i

    def unrelated(i):
        global G_OTHER
        G_OTHER = i

    return Case(f, change, unrelated, restore=lambda: change(0))


@case
def global_tensor_replaced_and_written():
    def f(x):
        return x * G_TENSOR + 1

    def change(i):
        global G_TENSOR
        if i % 2:
            G_TENSOR.add_(1)
        else:
            G_TENSOR = dlc.tensor([1.0, 2.0, 3.0 + i])

    return Case(f, change, restore=lambda: change(0))


@case
def global_function_rebound():
    def f(x):
        return g_act(x) - 1

    def change(i):
        global g_act
        g_act = [plus, times, dlc.relu][i % 3]

    return Case(f, change, restore=lambda: change(0))


@case
def builtin_shadowed():
    def f(x):
        return x + abs(-2)

    def change(i):
        if i % 2:
            globals()["abs"] = lambda v: 7 + i
        else:
            globals().pop("abs", None)

    return Case(f, change, restore=lambda: change(0))


@case
def builtin_replaced():
    import builtins

    plain = builtins.sum

    def f(x):
        return x + sum([1, 2])

    def change(i):
        builtins.sum = (lambda v: 9 + i) if i % 2 else plain

    return Case(f, change, restore=lambda: change(0))


@case
def default_arguments():
    def f(x, k=2.0):
        return x * k + 1

    def change(i):
        f.__defaults__ = (2.0 + i,)

    return Case(f, change)


@case
def default_arguments_of_a_callee():
    def inner(x, k=2.0, *, m=1):
        return x * k + m

    def f(x):
        return inner(x) - 1

    def change(i):
        inner.__defaults__ = (2.0 + i,)
        inner.__kwdefaults__ = {"m": i}

    return Case(f, change)


@case
def mutable_default_argument():
    def f(x, seen=[1.0]):  # noqa: B006
        return x * seen[-1] + len(seen)

    return Case(f, lambda i: f.__defaults__[0].append(2.0 * i))


@case
def code_swapped():
    def inner(x):
        return x + 1

    def other(x):
        return x * 5

    first = inner.__code__

    def f(x):
        return inner(x) - 1

    def change(i):
        inner.__code__ = other.__code__ if i % 2 else first

    def unrelated(i):
        inner.note = i

    return Case(f, change, unrelated)


@case
def own_code_swapped():
    def f(x):
        return x + 1

    first, second = f.__code__, (lambda x: x * 5 - 1).__code__

    def change(i):
        f.__code__ = second if i % 2 else first

    return Case(f, change)


# Attributes: modules, classes, instances, slots, properties, descriptors.


@case
def module_attribute():
    module = types.ModuleType("settings")
    module.k, module.other = 2.0, 0

    def f(x):
        return x * module.k + 1

    return Case(f, lambda i: setattr(module, "k", 2.0 + i), lambda i: setattr(module, "other", i))


@case
def class_attribute():
    class Config:
        k, other = 2.0, 0

    def f(x):
        return x * Config.k + 1

    return Case(f, lambda i: setattr(Config, "k", 2.0 + i), lambda i: setattr(Config, "other", i))


@case
def base_class_attribute():
    class Base:
        k = 2.0

    class Derived(Base):
        pass

    o = Derived()

    def f(x):
        return x * o.k + 1

    def change(i):
        if i == 2:
            Derived.k = 9.0
        else:
            Base.k = 2.0 + i

    return Case(f, change, lambda i: setattr(Base, "other", i))


@case
def instance_attribute_shadows_the_class():
    class Config:
        k = 2.0

    o = Config()

    def f(x):
        return x * o.k + 1

    def change(i):
        if i % 2:
            o.k = 3.0 + i
        else:
            o.__dict__.pop("k", None)

    return Case(f, change, lambda i: setattr(o, "other", i))


@case
def instance_dict_replaced():
    class Config:
        pass

    o = Config()
    o.k = 2.0

    def f(x):
        return x * o.k + 1

    def change(i):
        o.__dict__ = {"k": 2.0 + i}

    return Case(f, change)


@case
def class_of_an_instance_replaced():
    class A:
        def k(self):
            return 2.0

    class B(A):
        def k(self):
            return 5.0

    o = A()

    def f(x):
        return x * o.k() + 1

    def change(i):
        o.__class__ = B if i % 2 else A

    return Case(f, change)


@case
def slot():
    class Config:
        __slots__ = ("k", "other")

    o = Config()
    o.k, o.other = 2.0, 0

    def f(x):
        return x * o.k + 1

    return Case(f, lambda i: setattr(o, "k", 2.0 + i), lambda i: setattr(o, "other", i))


@case
def property_of_an_instance():
    class Config:
        raw = 1.0

        @property
        def k(self):
            return self.raw * 2

    o = Config()

    def f(x):
        return x * o.k + 1

    def change(i):
        if i == 2:
            Config.k = property(lambda self: -1.0)
        else:
            o.raw = 1.0 + i

    return Case(f, change, lambda i: setattr(o, "other", i))


@case
def method_replaced_on_the_class():
    class Scaler:
        def go(self, x):
            return x * 2

    o = Scaler()
    first = Scaler.go

    def f(x):
        return o.go(x) + 1

    def change(i):
        Scaler.go = (lambda self, x: x * (4 + i)) if i % 2 else first

    return Case(f, change, lambda i: setattr(Scaler, "unrelated", i))


@case
def method_replaced_on_the_instance():
    class Scaler:
        def go(self, x):
            return x * 2

    o = Scaler()

    def f(x):
        return o.go(x) + 1

    def change(i):
        if i % 2:
            o.go = lambda x: x * (4 + i)
        else:
            o.__dict__.pop("go", None)

    return Case(f, change)


@case
def special_method_replaced():
    class Number:
        def __init__(self):
            self.v = 2.0

        def __add__(self, x):
            return x + self.v

        def __len__(self):
            return 3

    o = Number()

    def f(x):
        return (o + x) * len(o)

    def change(i):
        if i % 2:
            Number.__len__ = lambda self: 5 + i
        else:
            Number.__add__ = lambda self, x: x * (2 + i)

    return Case(f, change)


@case
def getattr_hook_of_a_class():
    class Lazy:
        def __getattr__(self, name):
            return {"k": 2.0}[name]

    o = Lazy()

    def f(x):
        return x * o.k + 1

    def change(i):
        if i == 1:
            Lazy.__getattr__ = lambda self, name: 7.0
        elif i == 2:
            o.k = 1.5

    return Case(f, change)


@case
def metaclass_attribute():
    class Meta(type):
        k = 2.0

        @property
        def m(cls):
            return cls.k * 2

    class Config(metaclass=Meta):
        pass

    def f(x):
        return x * Config.m + Config.k

    def change(i):
        if i % 2:
            Meta.k = 5.0 + i
        else:
            Config.k = 2.0 + i

    return Case(f, change)


@case
def bases_replaced():
    class A:
        k = 2.0

    class B:
        k = 5.0

    class C(A):
        pass

    def f(x):
        return x * C.k + 1

    def change(i):
        C.__bases__ = (B,) if i % 2 else (A,)

    return Case(f, change)


@case
def enum_and_isinstance():
    class Mode(enum.Enum):
        A = 1
        B = 2

    state = {"mode": Mode.A}

    def f(x):
        return x * state["mode"].value if state["mode"] is Mode.A else x - 1

    def change(i):
        state["mode"] = Mode.B if i % 2 else Mode.A

    return Case(f, change)


@case
def dataclass_field():
    @dataclasses.dataclass
    class Config:
        k: float = 2.0
        tags: list = dataclasses.field(default_factory=list)

    o = Config()

    def f(x):
        return x * o.k + len(o.tags)

    def change(i):
        o.k = 2.0 + i
        if i == 2:
            o.tags.append("t")

    return Case(f, change)


# Containers.


@case
def list_item_and_length():
    items = [1.0, 2.0]

    def f(x):
        return x * items[-1] + len(items)

    def change(i):
        if i == 1:
            items[-1] = 5.0
        elif i == 2:
            items.append(7.0)

    return Case(f, change)


@case
def list_iterated():
    items = [1.0, 2.0]

    def f(x):
        for v in items:
            x = x * v + 1
        return x

    def change(i):
        if i == 1:
            items.reverse()
        elif i == 2:
            items.insert(0, 4.0)

    return Case(f, change)


@case
def dict_value():
    table = {"k": 2.0, "other": 1.0}

    def f(x):
        return x * table["k"] + table.get("m", 0.0)

    def change(i):
        table["k"] = 2.0 + i
        if i == 2:
            table["m"] = 3.0

    return Case(f, change, lambda i: table.__setitem__("other", float(i)))


@case
def dict_order():
    table = collections.OrderedDict(a=1.0, b=2.0, c=3.0)

    def f(x):
        for i, v in enumerate(table.values()):
            x = x + v * i
        return x

    def change(i):
        table.move_to_end("a", last=bool(i % 2))
        if i == 2:
            table["b"] = 7.0

    return Case(f, change)


@case
def plain_dict_order_and_membership():
    table = {"a": 1.0, "b": 2.0}

    def f(x):
        if "q" in table:
            x = x * 10
        return x + sum(i * v for i, v in enumerate(table.values()))

    def change(i):
        if i == 1:
            table["a"] = table.pop("a")
        elif i == 2:
            table["q"] = 0.0

    return Case(f, change)


@case
def set_membership():
    allowed = {1, 2}

    def f(x):
        return x * 2 if 3 in allowed else x + len(allowed)

    def change(i):
        allowed.add(2 + i)

    return Case(f, change)


@case
def tuple_in_a_cell():
    sizes = (1, 3)

    def f(x):
        return x.reshape(sizes) + sizes[1]

    def change(i):
        nonlocal sizes
        sizes = (3, 1) if i % 2 else (1, 3)

    return Case(f, change)


@case
def nested_containers():
    state = {"layers": [{"w": 2.0, "names": ("a", "b")}]}

    def f(x):
        for layer in state["layers"]:
            x = x * layer["w"] + len(layer["names"])
        return x

    def change(i):
        if i == 1:
            state["layers"][0]["w"] = 5.0
        elif i == 2:
            state["layers"].append({"w": -1.0, "names": ()})

    return Case(f, change)


@case
def deque_and_counter():
    recent, seen = collections.deque([1.0, 2.0], maxlen=2), collections.Counter("ab")

    def f(x):
        return x * recent[0] + seen["a"] + seen["zz"]

    def change(i):
        recent.append(3.0 + i)
        seen["a"] += 1

    return Case(f, change)


@case
def partial_and_its_arguments():
    def inner(x, k, m=1.0):
        return x * k + m

    holder = {"p": functools.partial(inner, k=2.0)}

    def f(x):
        return holder["p"](x) - 1

    def change(i):
        holder["p"] = functools.partial(inner, k=2.0 + i, m=float(i))

    return Case(f, change)


# Modules of nn.


def net():
    m = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU())
    with dlc.no_grad():
        m[0].weight.copy_(dlc.arange(9.0).view(3, 3) - 2)
    return m


def rows():
    return (dlc.tensor([[1.0, 2.0, 3.0]]),)


@case
def submodule_replaced():
    m = net()

    def change(i):
        m[1] = [nn.ReLU(), nn.Identity(), nn.Tanh()][i % 3]

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def submodule_added_and_removed():
    m = net()

    def change(i):
        if i % 2:
            m.append(nn.Identity())
            m.append(nn.Hardtanh())
        else:
            del m[-1]

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def training_flag():
    class Net(nn.Module):
        def forward(self, x):
            return x * 2 + 1 if self.training else x - 1

    m = Net()
    return Case(lambda x: m(x) * 2, lambda i: m.train(i % 2 == 0))


@case
def training_flag_of_a_deep_module():
    inner = nn.Dropout(0.999)
    m = nn.Sequential(nn.Identity(), nn.Sequential(inner))
    m.eval()

    def change(i):
        inner.p = 1.0 if i % 2 else 0.5
        inner.training = bool(i % 2)

    return Case(lambda x: m(x) * 2 + 1, change)


@case
def module_attribute_of_a_net():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.k, self.other = 2.0, 0

        def forward(self, x):
            return x * self.k + 1

    m = Net()
    return Case(lambda x: m(x), lambda i: setattr(m, "k", 2.0 + i), lambda i: setattr(m, "other", i))


@case
def module_attribute_behind_its_back():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0

        def forward(self, x):
            return x * self.k + 1

    m = Net()
    return Case(lambda x: m(x), lambda i: m.__dict__.__setitem__("k", 2.0 + i))


@case
def parameter_replaced():
    m = net()

    def change(i):
        m[0].weight = nn.Parameter(dlc.ones(3, 3) * (i + 1))

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def parameter_data_swapped():
    m = net()

    def change(i):
        m[0].weight.data = dlc.ones(3, 3) * (i + 1)

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def parameter_written():
    m = net()

    def change(i):
        with dlc.no_grad():
            m[0].weight.add_(1)

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def parameter_shape():
    m = net()

    def change(i):
        m[0].weight = nn.Parameter(dlc.ones(3 + i, 3))

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def parameter_behind_its_back():
    m = net()

    def change(i):
        m[0]._parameters["weight"] = nn.Parameter(dlc.ones(3, 3) * (i + 1))

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def requires_grad_of_a_parameter():
    m = net()

    def f(x):
        y = (m(x) * 2 + 1).sum()
        return y, y.requires_grad

    return Case(f, lambda i: m[0].weight.requires_grad_(i % 2 == 0), args=rows)


@case
def buffer_replaced_and_written():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", dlc.ones(3))

        def forward(self, x):
            return x * self.b + 1

    m = Net()

    def change(i):
        if i % 2:
            m.b = dlc.ones(3) * (i + 2)
        else:
            m.b.mul_(2)

    return Case(lambda x: m(x), change)


@case
def forward_hook():
    m, handles = net(), []

    def change(i):
        if i % 2:
            handles.append(m.register_forward_hook(lambda module, args, out: out + 100))
        else:
            handles.pop().remove()

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def pre_hook_of_a_deep_module():
    m, handles = net(), []

    def change(i):
        if i % 2:
            handles.append(m[1].register_forward_pre_hook(lambda module, args: (args[0] * 3,)))
        else:
            handles.pop().remove()

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def forward_replaced_on_the_instance():
    m = net()

    def change(i):
        if i % 2:
            m[1].forward = lambda x: x * (2 + i)
        else:
            del m[1].forward

    return Case(lambda x: m(x) + 1, change, args=rows)


@case
def forward_replaced_on_the_class():
    class Act(nn.Module):
        def forward(self, x):
            return x * 2

    m, first = nn.Sequential(Act(), nn.ReLU()), Act.forward

    def change(i):
        Act.forward = (lambda self, x: x - i) if i % 2 else first

    return Case(lambda x: m(x) + 1, change)


# Modes and the world outside.


@case
def grad_mode():
    w = dlc.ones(3, requires_grad=True)

    def f(x):
        y = x * w + 1
        return y, y.requires_grad, dlc.is_grad_enabled()

    return Case(f, lambda i: dlc.set_grad_enabled(i % 2 == 0), restore=lambda: dlc.set_grad_enabled(True))


@case
def requires_grad_of_an_argument():
    state = {"grad": False}

    def f(x):
        y = x * 2 + 1
        return y, y.requires_grad

    def change(i):
        state["grad"] = bool(i % 2)

    return Case(f, change, args=lambda: (dlc.ones(3, requires_grad=state["grad"]),))


@case
def default_dtype():
    def f(x):
        return x.sum() + dlc.ones(3) * 2.5, dlc.tensor([0.5]) * 3

    def change(i):
        dlc.set_default_dtype(dlc.float64 if i % 2 else dlc.float32)

    return Case(f, change, restore=lambda: change(0))


@case
def random_state():
    def f(x):
        return dlc.rand(3) * 2 + x

    return Case(f, lambda i: dlc.manual_seed(i), restore=lambda: dlc.manual_seed(0))


@case
def generator_object():
    holder = {"g": dlc.Generator()}
    holder["g"].manual_seed(1)

    def f(x):
        return dlc.rand(3, generator=holder["g"]) * 2 + x

    def change(i):
        holder["g"] = dlc.Generator()
        holder["g"].manual_seed(i)

    return Case(f, change)


@case
def environment():
    def f(x):
        return x * 2 if os.environ.get("DLC_GUARD_CASE") == "1" else x + 1

    def change(i):
        if i % 2:
            os.environ["DLC_GUARD_CASE"] = "1"
        else:
            os.environ.pop("DLC_GUARD_CASE", None)

    return Case(f, change, restore=lambda: change(0))


@case
def argument_type_and_structure():
    state = {"k": 2}

    def f(x, k):
        return (x * k, k) if k is not None else (x, "none")

    def change(i):
        state["k"] = [2, None, 2.5, True][i % 4]

    return Case(f, change, args=lambda: (dlc.ones(3), state["k"]))


@case
def argument_aliasing():
    state = {"same": False}

    def f(x, y):
        x.add_(1)
        return x * y

    def change(i):
        state["same"] = bool(i % 2)

    def args():
        x = dlc.ones(3)
        return (x, x) if state["same"] else (x, dlc.ones(3))

    return Case(f, change, args=args)


@case
def identity_of_arguments():
    state = {"same": False}

    def f(x, y):
        return x * 10 if x is y else x + y

    def change(i):
        state["same"] = bool(i % 2)

    def args():
        x = dlc.ones(3)
        return (x, x) if state["same"] else (x, dlc.ones(3))

    return Case(f, change, args=args)


@case
def layout_of_an_argument():
    state = {"t": False}

    def f(x):
        return (x * 2 + 1, x.is_contiguous(), x.stride())

    def change(i):
        state["t"] = bool(i % 2)

    def args():
        x = dlc.arange(9.0).view(3, 3)
        return (x.t() if state["t"] else x,)

    return Case(f, change, args=args)


@case
def dtype_of_an_argument():
    state = {"d": dlc.float32}

    def change(i):
        state["d"] = [dlc.float32, dlc.int64, dlc.float64][i % 3]

    return Case(lambda x: x * 2 + 1, change, args=lambda: (dlc.ones(3).to(state["d"]),))


@case
def grad_is_none_or_not():
    w = dlc.ones(3, requires_grad=True)

    def f(x):
        (w * x * 2).sum().backward()
        return w.grad.clone()

    def change(i):
        w.grad = None if i % 2 else dlc.ones(3)

    return Case(f, change)


@case
def tensor_hook():
    w, handles = dlc.ones(3, requires_grad=True), []

    def f(x):
        w.grad = None
        (w * x * 2).sum().backward()
        return w.grad.clone()

    def change(i):
        if i % 2:
            handles.append(w.register_hook(lambda g: g * 10))
        else:
            handles.pop().remove()

    return Case(f, change)


@case
def optimizer_setting():
    w = dlc.ones(3, requires_grad=True)
    opt = dlc.optim.SGD([w], lr=0.5)

    def f(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()
        return w.detach().clone()

    def change(i):
        if i == 2:
            opt.param_groups[0]["momentum"] = 0.5
        else:
            opt.param_groups[0]["lr"] = 0.5 + i

    return Case(f, change)


def rows_from(state):
    return lambda: (dlc.arange(24.0).view(6, 4)[state["at"] : state["at"] + 3],)


@case
def offset_of_an_argument():
    state = {"at": 0}

    def f(y):
        return y.detach(), y[1:], y.storage_offset(), y * 2 + y[0]

    return Case(f, lambda i: state.update(at=i % 3), args=rows_from(state))


@case
def offset_of_an_argument_written_in_part():
    state = {"at": 0}

    def f(y):
        y[1:].add_(1)
        y.t()[0] = 7.0
        return y, y.detach()

    return Case(f, lambda i: state.update(at=i % 3), args=rows_from(state))


@case
def offset_and_size_of_an_argument():
    state = {"at": 0, "n": 2}

    def f(y):
        return y[1:], y.view(-1)[:3], y * 2

    def change(i):
        state["at"], state["n"] = [(1, 3), (0, 4), (2, 2), (1, 4)][i % 4]

    return Case(f, change, args=lambda: (dlc.arange(24.0).view(6, 4)[state["at"] : state["at"] + state["n"]],))


@case
def two_views_of_one_argument():
    state = {"at": 1}

    def f(a, b):
        a.add_(1)
        return b.detach(), a[1:], b * 2

    def args():
        base = dlc.arange(24.0).view(6, 4)
        return base[:3], base[state["at"] : state["at"] + 3]

    return Case(f, lambda i: state.update(at=[1, 2, 3, 0][i % 4]), args=args)


@case
def counters_changed_twice_in_a_call():
    class A:
        made = 0

    class B(A):
        pass

    o, table, items, state = B(), {"n": 0}, [0], {"twice": 0}

    def f(x):
        for _ in range(1 + state["twice"]):
            A.made = A.made + 1
            o.own = getattr(o, "own", 0) + B.made
            table["n"] += o.made
            items[0] += table["n"]
        return x + A.made, o.own, table["n"], items[0]

    return Case(f, lambda i: state.update(twice=i % 3))


@case
def class_attribute_of_a_subclass_beside_the_bases():
    class A:
        k = 1.0

    class B(A):
        k = 2.0

    def f(x):
        A.k = A.k + 1
        return x * B.k + A.k

    return Case(f, lambda i: setattr(B, "k", 2.0 + i))


@case
def one_argument_is_a_view_of_the_other():
    state = {"view": True}

    def f(x, y):
        return x.flip(0) + 1, (y + 1).sum(), y[1:]

    def args():
        x = dlc.arange(6.0).view(3, 2)
        return x, x[:] if state["view"] else dlc.ones(3, 2)

    return Case(f, lambda i: state.update(view=i % 2 == 0), args=args)


@case
def one_argument_starts_inside_the_other():
    state = {"view": True}

    def f(x, y):
        return x + 1, y.detach(), y * 2

    def args():
        x = dlc.arange(8.0).view(4, 2)
        return x, x[1:] if state["view"] else dlc.ones(3, 2)

    return Case(f, lambda i: state.update(view=i % 2 == 0), args=args)
