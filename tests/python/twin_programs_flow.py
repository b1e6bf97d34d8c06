"""More programs, see twin_programs.py: operators, control flow, functions."""

# ruff: noqa

import contextlib
import functools

from twin_common import Bad, Base, Noisy, f_everything, log, say

table = {"a": 1, "b": [1, 2, 3]}


# Operators and truth.


def p_operators():
    a, b, s = 7, 3, {1, 2}
    ints = a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a | b, a ^ b, a & b, -a, +a, ~a, not a
    return ints, s | {3}, s & {1}, s - {1}, "%s-%d" % ("x", 3), [1] * 2, 2**10, -1, 1 - 2j


class Matrix:
    def __matmul__(self, other):
        return "matmul"

    def __imatmul__(self, other):
        return "imatmul"


def p_matmul():
    m = Matrix()
    r = m @ m
    m @= 2
    return r, m


def p_reflected():
    n = Noisy("n")
    return 1 + n, n + 1, -n, n + (n + n)


def p_failing_operator():
    return 1 + (2 * (say(3) + "x"))


def p_failing_unary():
    return -say("x")


def p_comparisons():
    a, b, n = 1, 2, None
    return (
        a == b,
        a != b,
        a < b,
        a <= b,
        a > b,
        a >= b,
        n is None,
        n is not None,
        a in [1],
        a not in (1, 2),
        "k" in {"k"},
    )


def p_chained_comparisons():
    a, b, c = Noisy("a"), Noisy("b", less=False), Noisy("c")
    results = [0 < say(1) < say(2), 3 < say(1) < say(2), 1 < 2 < say(3) < 4 > 3 == 3]
    results.append(a < b < c)
    results.append(b < say(a) < c)
    if a < b < c:
        results.append("yes")
    if a < c < b < a:
        results.append("no")
    return results, [x for x in range(5) if 0 < x < 3 < say(4)]


def p_failing_comparison():
    return 1 < say(2) < say("x")


def p_and_or_values():
    t, f = Noisy("t"), Noisy("f", truth=False)
    return (
        t and f,
        t or f,
        f or t,
        f and t,
        not t,
        not f,
        (t and f or 3),
        (f or t) and 4,
        not (t and f),
        t and f and t,
        0 or [] or (),
    )


def p_truth_asked_once():
    t, f = Noisy("t"), Noisy("f", truth=False)
    result = []
    if t and (f or t):
        result.append(1)
    while f or not t:
        result.append(2)
    result.append(3 if t and not f else 4)
    assert t or f
    if (t if f else f) or t:
        result.append(5)
    return result


def p_and_or_in_iterables():
    t, e = [1, 2], []
    return [x for x in e or t], {x: y for x in t and t for y in (x or 1, x and 2)}, list(x for x in (e or t) if x or t)


def p_interleaved_generators():
    def values(n):
        return (x or y or n for x in range(n) for y in (0, next(others, 0) and x or 7) if 0 <= y < 100)

    others = values(3)
    a, b = values(4), values(5)
    return [(i, j) for i, j in zip(a, b)]


def p_failing_truth_in_if():
    if say(1) and Bad():
        return 1


def p_failing_truth_in_elif():
    if not say(1):
        return 1
    elif Bad():
        return 2


def p_failing_truth_in_while():
    while say(1) and not Bad():
        return 1


def p_failing_truth_in_assert():
    assert Bad(), "message"


def p_failing_truth_in_ternary():
    return 1 + (2 if Bad() else 3)


def p_failing_truth_of_not():
    return 1, not Bad()


def p_failing_truth_of_and():
    return say(1) and Bad() and 2


def p_failing_truth_of_mixed():
    return (say(1) and Bad()) or 2


def p_failing_truth_of_or():
    return [say(0) or Bad() or 2]


def p_failing_truth_of_chain():
    return 1, (Bad() < 2 < 3)


def p_failing_truth_of_tested_chain():
    if 1 < 2 and Bad() < 2 < 3:
        return 1


def p_failing_truth_of_compare():
    if say(1) and Bad() < 2:
        return 1


def p_failing_truth_in_list():
    return [x for x in range(3) if x < 5 if Bad()]


def p_failing_truth_in_set():
    return {x for x in range(3) if Bad()}


def p_failing_truth_after_chain():
    if 1 < 2 and (say(1) and Bad()):
        return [x for x in range(3) if Bad()]


def p_failing_truth_in_generator():
    return list(x for x in range(3) if x < 5 and Bad())


def p_failing_truth_of_element():
    return [x and Bad() and 3 for x in range(3)]


def p_failing_truth_in_nested_ternary():
    if Bad() if say(1) else 2:
        return 1


def p_ternary():
    n = Noisy("n", truth=False)
    return (1 if n else 2), [i if i % 2 else -i for i in range(3)], "a" if table else n.x


# Control flow.


def p_for():
    out = []
    for i in range(5):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(i)
    else:
        out.append("else")
    for i, (j, *k) in enumerate(["abc", "de"]):
        out.append((i, j, k))
    else:
        out.append("end")
    n = Noisy("n")
    for n.x in n:
        pass
    for n[0], n.y in zip("a", "b"):
        pass
    return out, i


def p_for_not_iterable():
    for x in say(5):
        return x


def p_failing_iterator():
    def bad():
        yield 1
        raise KeyError("in the iterator")

    for x in bad():
        log.append(x)


def p_old_iteration():
    class Old:
        def __getitem__(self, i):
            if i > 2:
                raise IndexError
            return i * 10

    return list(Old()), [x for x in Old()], [*Old()], 20 in Old()


def p_while():
    n, out = 0, []
    while n < 10:
        n += 1
        if n % 2:
            continue
        out.append(n)
        if n > 5:
            break
    else:
        out.append("never")
    while True:
        n -= 1
        if n < 2:
            break
    while n:
        n -= 1
    else:
        out.append("else")
    return out, n


def p_try():
    out = []
    for k in range(5):
        try:
            out.append(("try", k))
            if k == 0:
                raise ValueError("v")
            if k == 1:
                {}[k]
            if k == 2:
                continue
            if k == 4:
                break
        except (ValueError, TypeError) as error:
            out.append(repr(error))
        except KeyError:
            out.append("key")
        else:
            out.append("else")
        finally:
            out.append("finally")
    return out


def p_finally_return():
    def inner():
        try:
            return say("try")
        finally:
            say("finally")

    return inner()


def p_raise_from():
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise RuntimeError("outer") from error
    except RuntimeError as error:
        raise ValueError("last") from None if error is None else error


def p_raise_class():
    try:
        raise StopAsyncIteration
    except StopAsyncIteration:
        raise


def p_raise_in_handler():
    try:
        say(1) / 0
    except ZeroDivisionError:
        [].pop()


def p_bad_raise():
    raise say(3)


def p_assert():
    assert say(True), say("not evaluated")
    assert say([]), f"message {say(2)}"


def p_with():
    a, b = Noisy("a"), Noisy("b", swallow=True)
    with a as x, b as (y, z), a:
        log.append((str(x), str(y), str(z)))
        raise ValueError("swallowed")
    with b as a.target:
        pass
    return 1


def p_with_failure():
    with contextlib.suppress(KeyError):
        {}["k"]
    with Noisy("n"), contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        raise ValueError("leaves")


def p_not_a_manager():
    with say(3):
        pass


def p_return_from_with():
    with Noisy("n") as n:
        for _ in range(3):
            return n.value


# Functions, generators, classes, imports.


def deco(argument):
    log.append(f"deco {argument}")

    def apply(function):
        log.append(f"apply {argument} {getattr(function, '__name__', function)}")

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return argument, function(*args, **kwargs)

        return wrapper

    return apply


def p_decorators():
    base = 3

    @deco(say("one"))
    @deco("two")
    def inner(x, y=say(5), *, z=base):
        """Doc."""
        return x + y + z

    return inner(1), inner.__name__, inner.__qualname__, inner.__doc__, inner.__defaults__


def p_failing_decorator():
    @deco(1)
    @say(2)
    def inner():
        pass


def p_lambdas():
    f = lambda a, b=2, *c, d=3, **e: (a, b, c, d, e)
    g = (lambda: (yield 5))()
    return f(1), f(1, 2, 3, d=4, e=5), next(g), (lambda x: x if x else x or 1)(0), (lambda x: 0 < x < 3 or [x])(4)


def p_two_lambdas_on_a_line():
    f, g = (lambda x: x + 1), (lambda x: x * 2)
    return f(5), g(5)


def p_nested_code_is_shared():
    def inner():
        return 1

    made = [
        inner.__code__ is p_nested_code_is_shared.__code__.co_consts[i]
        for i in range(len(p_nested_code_is_shared.__code__.co_consts))
    ]
    return any(made)


def generator(n):
    total = 0
    for i in range(n):
        try:
            got = yield i
            log.append(f"got {got}")
            total += got or 0
        except KeyError as error:
            log.append(f"thrown {error}")
        finally:
            log.append("step")
    return total


def p_generators():
    g = generator(4)
    out = [next(g), g.send(5), g.throw(KeyError("k"))]
    try:
        g.send(7)
        next(g)
    except StopIteration as stop:
        out.append(stop.value)
    h = generator(3)
    next(h)
    h.close()
    return out


def p_yield_from():
    def outer():
        result = yield from generator(3)
        yield "result", result
        yield from [1, 2]
        yield from Noisy("n")

    g = outer()
    return [next(g), g.send(1), g.send(2), g.send(3), *g]


def p_failing_generator_function():
    def inner():
        yield 1
        yield 1 / 0

    def outer():
        yield from inner()

    return list(outer())


def p_local_class():
    scale = 3

    @say
    class Local(Base, metaclass=say(type)):
        """Doc."""

        factor = scale

        def value(self):
            return self.x * self.factor + scale

    return Local(2).value(), Local.__qualname__, Local.__doc__, Local.make(1).x


def p_local_imports():
    import os.path
    import string as text
    from collections import OrderedDict
    from collections import deque as queue

    return os.path.basename("a/b"), text.digits, OrderedDict.__name__, list(queue([1]))


def p_failing_import():
    from math import no_such_function


def p_contextmanager():
    @contextlib.contextmanager
    def managed(x):
        log.append("in")
        try:
            yield x + 1
        finally:
            log.append("out")

    with managed(1) as v:
        log.append(v)
    return v


def p_partial_and_cache():
    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(20), functools.partial(f_everything, 1, c=2)(3), functools.reduce(lambda a, b: a + b, [1, 2, 3])


def p_docstring_only():
    "Nothing else."


def p_kwargs_hold_nothing_hidden():
    def inner(**kw):
        return sorted(kw)

    return f_everything(1, 2, c=3)[-1], inner(x=1)


def p_globals_of_elsewhere():
    return contextlib.closing.__name__, functools.WRAPPER_ASSIGNMENTS[0]


def p_match_names_are_no_keywords():
    match = case = type = 1
    return match + case + type


def p_deep_nesting():
    x = [[[[[[1]]]]]]
    return x[0][0][0][0][0][0] + (((((1 + 2) * 3) - 4) // 5) % 6)


def p_fuzzy_suggestions():
    value_of_this = 1
    return valu_of_this


def p_conditional_function():
    if table:

        def f():
            return 1

    else:

        def f():
            return 2

    return f()


PROGRAMS = [value for name, value in sorted(globals().items()) if name.startswith("p_")]
