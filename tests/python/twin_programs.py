"""Small programs, a function each, that together hold every statement and expression of Python that a twin may have.

A program returns what it computed; `log` gets what it did on the way. Some raise: then the printed traceback counts.
Lines are broken where the compiler gives an operation the line of a part.
"""

# ruff: noqa

import contextlib
import functools
import math as mathematics

from twin_common import Base, Noisy, f_everything, log, say

counter = 0
table = {"a": 1, "b": [1, 2, 3]}


# Names and stores.


def p_globals_and_builtins():
    return len(table), table["a"], mathematics.floor(2.5), __name__.rpartition(".")[0]


def p_global_store():
    global counter
    counter = 5
    counter += 2
    (counter, other), third = (counter + 1, 3), 4
    for counter in range(counter, counter + 2):
        pass
    return counter, other, third


def p_global_walrus_and_def():
    global counter, made

    def made():
        return counter

    if (counter := 11) > 10:
        return made(), counter


def p_cells():
    x, total = 1, []

    def add(n):
        nonlocal x
        x += n
        total.append(x)
        return lambda: x * 2

    twice = add(3)
    x = 10
    return twice(), total, [f() for f in [lambda k=k: k + x for k in range(3)]]


def p_free_variables():
    x = 5
    y = [1]

    def inner(k):
        nonlocal x
        if k:
            x, y[0] = x + k, x
            x += 1
        return (x, y, [x + i for i in range(2)], sum(x for _ in y))

    return inner(1), inner(0), x


def p_unbound_local():
    if not table:
        x = 1
    return x


def p_unbound_free():
    def inner():
        return late

    result = inner()
    late = 1
    return result, late


def p_no_such_global():
    return say(1) + no_such_name


def p_del():
    a, b, c = 1, {"x": 1, "y": 2}, Noisy("c")
    del a, b["x"], c.attribute, (c[3], c[1:2])
    try:
        return a
    except NameError as error:
        return str(error), b


def p_chained_assignment():
    a = b = c = [1, 2]
    (x, y) = z = a
    n = Noisy("n")
    n.p = n[1], q = z
    return a is b is c, x, y, z is a, q


def p_unpack_order():
    n = Noisy("n")
    i = 0
    i, n[i], (n.a, *rest), i = 1, 2, "abc", 4
    n[say(9)].z, n[say(8)] = say(1), say(2)
    return i, rest


def p_unpack_star():
    first, *middle, last = range(5)
    *start, end = "ab"
    a, (b, *c), d = 1, (2, 3, 4), 5
    [p, [q]] = [1, [2]]
    return first, middle, last, start, end, a, b, c, d, p, q


def p_unpack_too_few():
    a, b = say([1])
    return a, b


def p_unpack_too_many():
    a, b = iter(say((1, 2, 3)))
    return a, b


def p_unpack_star_too_few():
    a, b, *c = say([1])
    return a, b, c


def p_unpack_not_iterable():
    a, b = say(7)
    return a, b


def p_swap():
    a, b = 1, 2
    a, b = b, a
    x = [1, 2]
    x[0], x[1] = x[1], x[0]
    return a, b, x


def p_annotations():
    x: int = 1
    y: no_such_type
    n = Noisy("n")
    n.z: str = "s"
    n[say(0)]: no_such_type = 3
    n.w: int
    return x


def p_augmented():
    n = Noisy("n")
    a = [1]
    a += (2,)
    a *= 2
    n += 1
    n.x += 2
    n.y.z += 3
    n[say(1)] += say(4)
    n[say(1) : say(2)].k += 5
    b = 7
    b -= 1
    b //= 2
    b **= 3
    b %= 10
    b <<= 3
    b |= 1
    b ^= 3
    b &= 0xFF
    b >>= 1
    b /= 2
    table["a"] += 0
    return a, b


def p_augmented_failure():
    n = Noisy("n")
    n.x = 1
    n.x += "text"


def p_walrus():
    values = [y := 5, y**2]
    return values, [last := i for i in range(4)], last, (z := y + 1) and z


# Attributes and items.


def p_attributes():
    n = Noisy("n")
    return n.a.b.c, n.a(1).b, getattr(n, "z"), n.f(k=n.g)


def p_attribute_lines():
    n = Noisy("n")
    return (
        n
        .a
        .missing_here
        .c
    )  # fmt: skip


def p_method_lines():
    n = Noisy("n")
    return (
        n
        .f(1)
        .missing_method(
            2,
            3,
        )
    )  # fmt: skip


def p_method_before_arguments():
    n = Noisy("n")
    n.method(say(1), key=say(2))
    n.missing(say(3))


def p_failing_method():
    return [1, 2].index(
        5
    )  # fmt: skip


def p_failing_call():
    def inner(a, *, b):
        return a

    return inner(1,
                 2,
                 b=3)  # fmt: skip


def p_items():
    x = list(range(10))
    n = Noisy("n")
    x[2:4] = "ab"
    x[-1] = x[0]
    del x[5:]
    t = n[1], n[1:2], n[1:2, ::3], n[...], n[:, None]
    return x, x[1], x[1:], x[:-1], x[::2], t


def p_failing_item():
    deep = {"a": {"b": [1]}}
    return deep["a"]["b"][0] + deep["a"]["c"][0]


def p_failing_store():
    t = (1, 2)
    t[0] = say(
        3
    )  # fmt: skip


def p_failing_delete():
    d = {}
    del d["missing"]


class Mangled:
    __hidden = 3

    def __init__(self):
        self.__x = 1
        self.__class_name = "c"

    def __private(self, __k=2):
        return self.__x + __k

    def run(self):
        self.__x += 1
        __local = self.__private()
        return __local, self.__x, Mangled.__hidden, sorted(self.__dict__)


def p_mangling():
    return Mangled().run()


def p_mangled_failure():
    return Mangled.run(Noisy("n", missing=1))


# Calls.


def p_calls():
    more, options = [5, 6], {"d": 7, "z": 8}
    return (
        f_everything(1, 2, c=3),
        f_everything(1, *more, c=3, **options),
        f_everything(*more, *more, c=1, **{"x": 1}, **{"y": 2}),
        f_everything(*(i for i in "xy"), c=0),
        print.__name__,
        dict(a=1, **options),
        max(*more, 3),
    )


def p_argument_order():
    say("f", f_everything)(say(1), *say([2]), c=say(3), **say({"e": 5}), d=say(4))
    return {say("k"): say("v"), **say({"m": 1}), "n": say(2)}


def p_bad_arguments():
    return f_everything(1)


def p_too_many_arguments():
    return (lambda x: x)(1, 2)


def p_not_callable():
    return say(3)(4)


def p_recursion():
    def down(n):
        return 1 if n == 0 else n * down(n - 1)

    return down(10)


class Derived(Base):
    def __init__(self, x):
        super().__init__(x)
        self.y = x

    def value(self, k=2):
        self, other = self, 1
        return super().value(k) + super().value(k), __class__.__name__, other

    @classmethod
    def make(cls, x):
        return super().make(x)

    @property
    def double(self):
        return super().double + 1

    def lost(self):
        return super().nothing


def p_super():
    d = Derived(3)
    return d.value(), d.double, Derived.make(1).x, d.fixed(), Derived.fixed()


def p_super_failure():
    return Derived(1).lost()


# Strings.


def p_fstrings():
    x, w, n = 3.14159, 8, Noisy("n")
    return f"{x}", f"a{x:.2f}b", f"{x!r:>{w}}|{n}|{n!s:{w}}", f"{x=}", f"{'lit'}{{}}", f"", f"{n:a{w}b}{w!a}"


def p_failing_fstring():
    return f"{say(1)} {say('x'):d}"


def p_many_lines():
    return say(
        f"{say(1)}"
        f"{say(2) + 'x'}"
    )  # fmt: skip


# Displays and comprehensions.


def p_displays():
    a, n = [1, 2], Noisy("n")
    return [*a, 3, *"xy"], (*a, *a), sorted({*a, 5}), {"x": 1, **{"y": 2}}, {n: n}, len({n, n}), [], {}, (1, 2), [[]]


def p_bad_display():
    return [*say(5)]


def p_bad_double_star():
    return {**say(5)}


def p_unhashable():
    return {say("k"): 1, say([1]): 2}


def p_comprehensions():
    k = 10
    pairs = [(1, (2, 3)), (4, (5, 6))]
    return (
        [a + b + c + k for a, (b, c) in pairs],
        {a: b for a, (b, *_) in pairs if a > 1 if b},
        sorted({x % 3 for x in range(10)}),
        [(x, y) for x in range(3) for y in range(x) if x != y],
        [[y * k for y in range(x)] for x in range(3)],
        list(map(lambda v: v + k, (x for x in range(3)))),
        [lambda: x for x in range(3)][0](),
        [table for table in range(2)],
        len(table),
    )


def p_failing_comprehension():
    return [
        10
        // x
        for x in (1, 0)
    ]  # fmt: skip


def p_failing_generator():
    def items():
        return sum(1 // x for x in (1, 0))

    return items()


def p_class_in_comprehension():
    return [type(f"T{i}", (), {"i": i})().i for i in range(2)]


# Patterns.


class Mode:
    FAST = "fast"
    SLOW = Noisy("slow")


def p_match():
    global matched
    out = []
    for value in ("fast", 1, -2, None, True, 2.5, "x", Noisy("slow"), 7, (1,)):
        match say(value):
            case Mode.FAST | "quick":
                out.append("fast")
            case 1 | -2 as number if number > say(0):
                out.append(("number", number))
            case None:
                out.append("none")
            case True | False:
                out.append("bool")
            case matched if matched == 2.5:
                out.append("captured")
                continue
            case Mode.SLOW:
                out.append("slow")
            case "x" as text:
                match text:
                    case "y":
                        out.append("never")
                out.append(text)
            case _ if value == 7:
                break
            case _:
                out.append("other")
    return out, number, matched


def p_failing_match():
    match say("a"):
        case "b":
            return 1
        case Mode.missing:
            return 2


def p_failing_comparison_in_match():
    class Bad:
        def __eq__(self, other):
            raise ValueError("no comparison")

    match Bad():
        case None:
            return 1
        case 3 | "x":
            return 2


PROGRAMS = [value for name, value in sorted(globals().items()) if name.startswith("p_")]
