"""Hooks for twins that do the plain operation and nothing else, in plain Python. Python functions of chosen files are
entered as twins themselves. Needs neither the extension nor pytest, so that any interpreter can run it.
"""

import importlib.util
import operator
import os
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def load_capture():
    """dlc._capture by its path: importing dlc would need the extension."""
    if "dlc_capture" not in sys.modules:
        folder = os.path.join(HERE, "..", "..", "python", "dlc", "_capture")
        location = os.path.join(folder, "__init__.py")
        spec = importlib.util.spec_from_file_location("dlc_capture", location, submodule_search_locations=[folder])
        module = sys.modules["dlc_capture"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["dlc_capture"]


capture = load_capture()
binary = [operator.add, operator.sub, operator.mul, operator.matmul, operator.truediv, operator.floordiv, operator.mod]
binary += [operator.pow, operator.lshift, operator.rshift, operator.or_, operator.xor, operator.and_]
in_place = [operator.iadd, operator.isub, operator.imul, operator.imatmul, operator.itruediv, operator.ifloordiv]
in_place += [
    operator.imod,
    operator.ipow,
    operator.ilshift,
    operator.irshift,
    operator.ior,
    operator.ixor,
    operator.iand,
]
unary = [operator.pos, operator.neg, operator.invert]
compare = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.is_, operator.is_not]
compare += [lambda a, b: a in b, lambda a, b: a not in b]
conversions = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}

entered = {}
refused = {}
counts = {}
enter_files = None


class Iterator:
    def __init__(self, iterable):
        self.iterator = iter(iterable)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.iterator)


def iterates(value):
    return hasattr(type(value), "__getitem__") or getattr(type(value), "__iter__", None) is not None


def hook(name):
    function = vars(Hooks)[name[5:]]

    def counted(*args, **kwargs):
        counts[name] = counts.get(name, 0) + 1
        return function(*args, **kwargs)

    return counted


class Hooks:
    def gl(fn, name, value):
        assert isinstance(fn, types.FunctionType) and type(name) is str
        return value

    def cell(fn, name, value):
        assert name in fn.__code__.co_freevars
        return value

    cellw = cell
    glw = gl
    attr = getattr
    setattr = setattr
    delattr = delattr
    item = operator.getitem
    setitem = operator.setitem
    delitem = operator.delitem

    def call(f, /, *args, **kwargs):
        return twin(f)(*args, **kwargs)

    truth = operator.truth

    def it(iterable, loop):
        if loop == 0 or not iterates(iterable):
            return iterable
        return Iterator(iterable)

    def unp(value, n, star):
        if not iterates(value):
            return value
        iterator = iter(value)
        if star >= 0:
            values = list(iterator)
            if len(values) < n - 1:
                raise ValueError(f"not enough values to unpack (expected at least {n - 1}, got {len(values)})")
            end = len(values) - (n - star - 1)
            return (*values[:star], values[star:end], *values[end:])
        if type(value) in (tuple, list):
            return tuple(value)
        values = []
        for item in iterator:
            values.append(item)
            if len(values) > n:
                break
        return tuple(values)

    def ctx(manager):
        return manager

    def bin(op, a, b):
        return binary[op](a, b)

    def aug(op, a, b):
        return in_place[op](a, b)

    def un(op, a):
        return unary[op](a)

    def cmp(op, a, b):
        return compare[op](a, b)

    def fmt(value, conversion, spec):
        return format(conversions[conversion](value), spec)

    def join(*parts):
        return "".join(parts)

    def key(value):
        return value

    def imp(value, module, name):
        return value

    map = exc = func = key


NAMES = [name for name in capture.HIDDEN if name != "_dlc_fn"]
HOOKS = {name: hook(name) for name in NAMES}


def twin_function(function):
    """A function of the twin's code, or Untwinnable."""
    code = capture.twin_of(function)
    result = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    result.__qualname__ = function.__qualname__
    result.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **HOOKS, "_dlc_fn": function}
    return result


def twin(callee):
    """What to call instead: the twin of a Python function or method of the chosen files, else the callee itself."""
    if isinstance(callee, types.MethodType):
        function = twin(callee.__func__)
        return callee if function is callee.__func__ else types.MethodType(function, callee.__self__)
    if not isinstance(callee, types.FunctionType) or callee.__code__.co_filename == __file__:
        return callee
    if enter_files is not None and callee.__code__.co_filename not in enter_files:
        return callee
    try:
        result = twin_function(callee)
    except capture.Untwinnable as error:
        refused[callee.__module__, callee.__qualname__] = str(error)
        return callee
    entered[callee.__module__, callee.__qualname__] = True
    return result


def plain_traceback(exception):
    """What is printed for the exception, without the frames of this file and above the program."""
    seen = set()

    def clean(error):
        if error is None or id(error) in seen:
            return
        seen.add(id(error))
        frames, place = [], error.__traceback__
        while place is not None:
            frames.append(place)
            place = place.tb_next
        frames = [f for f in frames if f.tb_frame.f_code.co_filename != __file__]
        following = None
        for frame in reversed(frames):
            following = types.TracebackType(following, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        error.__traceback__ = following
        clean(error.__cause__)
        clean(error.__context__)

    clean(exception)
    return "".join(traceback.format_exception(type(exception), exception, exception.__traceback__))


def outcome(function, *args, **kwargs):
    """The result or the traceback's text."""
    try:
        return "result", function(*args, **kwargs)
    except Exception as error:
        return "raised", plain_traceback(error)
