"""Compares a compiled function with the plain one: results, exceptions and what became of the inputs, call by call."""

import contextlib

import dlc
import numpy as np


def tensors_in(value):
    """All tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, dlc.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_in(item)]
    return []


def array(t):
    """The values as NumPy's; bfloat16, which NumPy doesn't have, widened without loss."""
    t = t.detach()
    return (t.float() if t.dtype == dlc.bfloat16 else t).numpy()


def assert_same_tensor(got, want, rtol=0.0, strides=True):
    """Dtype, shape, strides (of non-trivial dims), NaN class and zero's sign; values bit for bit unless `rtol` is given."""
    assert got.dtype == want.dtype
    assert tuple(got.shape) == tuple(want.shape)
    assert got.requires_grad == want.requires_grad
    if strides:
        moved = [i for i, n in enumerate(want.shape) if n > 1]
        assert [got.stride(i) for i in moved] == [want.stride(i) for i in moved] or not got.numel()
    a, b = array(got), array(want)
    if a.dtype.kind != "f":
        assert np.array_equal(a, b), f"{a} instead of {b}"
        return
    assert np.array_equal(np.isnan(a), np.isnan(b)), f"{a} instead of {b}"
    number = ~np.isnan(b)
    if rtol:
        np.testing.assert_allclose(a[number], b[number], rtol=rtol, atol=rtol)
    else:
        assert np.array_equal(a[number], b[number]), f"{a} instead of {b}"
    zero = number & (b == 0)
    assert np.array_equal(np.signbit(a[zero]), np.signbit(b[zero])) or rtol, f"{a} instead of {b}: sign of zero"


def assert_same(got, want, rtol=0.0):
    """Like `assert_same_tensor` over nested structures."""
    if isinstance(want, dlc.Tensor):
        assert isinstance(got, dlc.Tensor)
        assert_same_tensor(got, want, rtol)
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want):
            assert_same(a, b, rtol)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        assert_same(list(got.values()), list(want.values()), rtol)
    else:
        assert type(got) is type(want)
        assert got == want or (got != got and want != want)


def outcome(f, args, kwargs=None):
    """("value", result) or ("error", exception)."""
    try:
        return "value", f(*args, **(kwargs or {}))
    except Exception as error:
        return "error", error


def assert_values(result, expected):
    """Tensors of `result` against nested lists of Python numbers."""
    tensors = tensors_in(result)
    assert len(tensors) == len(expected)
    for t, want in zip(tensors, expected):
        got, want = array(t), np.asarray(want)
        assert got.shape == want.shape, f"{got} instead of {want}"
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f" and want.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


class Counted:
    """How the compile counters moved since the object was made."""

    def __init__(self):
        self.before = dlc.compile_stats()

    def __getattr__(self, name):
        return dlc.compile_stats()[name] - self.before[name]


@contextlib.contextmanager
def at_most(compilations, fallbacks=0):
    """Asserts how many compilations and fallbacks the body costs."""
    counted = Counted()
    yield counted
    assert counted.compilations <= compilations, f"{counted.compilations} compilations"
    assert counted.fallbacks <= fallbacks, f"{counted.fallbacks} fallbacks"


def compare_call(f, compiled, make, rtol=0.0):
    """One call of each on equal, freshly made arguments. Returns the plain outcome."""
    plain_args, compiled_args = make(), make()
    kind, want = outcome(f, plain_args)
    got_kind, got = outcome(compiled, compiled_args)
    if kind == "error":
        assert got_kind == "error", f"no {type(want).__name__} but {got}"
        assert type(got) is type(want), repr(got)
    else:
        if got_kind == "error":
            raise got
        assert_same(got, want, rtol)
    for a, b in zip(tensors_in(compiled_args), tensors_in(plain_args)):
        assert_same_tensor(a, b, rtol)
    return kind, want


def check(f, *makers, expect=None, error=None, compilations=2, fallbacks=0, rtol=0.0):
    """Calls the compiled and the plain `f` three times on what each maker makes, and again in the other order.

    Each order has a compiled function of its own. `expect`: values of the first maker's results as nested lists.
    `error`: the exception class of the first maker. The counts hold for one order.
    """
    for order in ([*range(len(makers))], [*reversed(range(len(makers)))])[: min(2, len(makers))]:
        compiled = dlc.compile(f)
        with at_most(compilations, fallbacks):
            for _ in range(3):
                for i in order:
                    kind, want = compare_call(f, compiled, makers[i], rtol)
                    if i == 0:
                        expectation(kind, want, expect, error)
    return compiled


def expectation(kind, want, expect, error):
    """Eager's outcome is what the case says."""
    if error is not None:
        assert kind == "error" and isinstance(want, error), f"{want!r} instead of {error.__name__}"
    if expect is not None:
        if kind == "error":
            raise want
        assert_values(want, expect)
