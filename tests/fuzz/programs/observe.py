"""Freezes what can be seen of a program after a call into plain data, and compares two such records.

Objects met again are references to where they were met first, so that sharing and identity are part of the record.
"""

import collections
import dataclasses
import enum
import itertools
import types

import dlc
import numpy as np

SIMPLE = (type(None), bool, int, float, str, bytes, complex, dlc.dtype, dlc.Size, range, slice, enum.Enum)


class Observer:
    """One record: `freeze` values in a fixed order. `module` is the program's module, whose own classes are looked into."""

    def __init__(self, module):
        self.module = module
        self.known, self.storages, self.kept = {}, {}, []

    def freeze(self, value):
        if isinstance(value, SIMPLE) and not isinstance(value, enum.Enum):
            return value
        if isinstance(value, enum.Enum):
            return ("enum", str(value))
        if id(value) in self.known and value != ():
            return ("seen", self.known[id(value)])
        self.known[id(value)] = len(self.known)
        self.kept.append(value)  # an id stays taken
        if isinstance(value, dlc.Tensor):
            return self.tensor(value)
        if isinstance(value, dict):
            extra = type(value).__name__, getattr(value, "default_factory", None) is not None
            return ("dict", extra, [(self.freeze(k), self.freeze(v)) for k, v in list(value.items())])
        if isinstance(value, (list, tuple, collections.deque)):
            return (type(value).__name__, [self.freeze(v) for v in list(value)])
        if isinstance(value, (set, frozenset)):
            return (type(value).__name__, sorted((self.freeze(v) for v in value), key=repr))
        if isinstance(value, types.GeneratorType):
            return self.generator(value)
        return self.other(value)

    def tensor(self, t):
        number = self.storages.setdefault(t._storage_ptr(), len(self.storages))
        layout = tuple(t.shape), t.storage_offset()
        strides = [t.stride(i) for i, n in enumerate(t.shape) if n > 1] if t.numel() else []
        data = t.detach().clone()
        data = (data.float() if data.dtype == dlc.bfloat16 else data).numpy()
        about = (
            "tensor",
            type(t).__name__,
            str(t.dtype),
            *layout,
            strides,
            t.requires_grad,
            t.is_leaf,
            number if t.numel() else -1,
        )
        return (*about, data, self.freeze(t.grad) if t.is_leaf else None)

    def generator(self, g):
        items = []
        try:
            while len(items) < 9:
                items.append(self.freeze(next(g)))
        except StopIteration as stop:
            return ("generator", items, self.freeze(stop.value))
        except Exception as error:
            return ("generator", items, repr(error))
        return ("generator", items, "more")

    def other(self, value):
        own = self.module.__name__
        if isinstance(value, types.FunctionType):
            if value.__module__ != own:
                return ("function", value.__qualname__)
            cells = [
                self.freeze(c.cell_contents) if c.cell_contents is not value else "itself"
                for c in value.__closure__ or ()
            ]
            return (
                "function",
                value.__qualname__,
                self.freeze(value.__defaults__),
                self.freeze(value.__kwdefaults__),
                cells,
            )
        if isinstance(value, types.MethodType):
            return ("method", value.__func__.__qualname__, self.freeze(value.__self__))
        if isinstance(value, type):
            if value.__module__ != own or issubclass(value, enum.Enum):
                return ("class", value.__qualname__)
            members = {k: v for k, v in vars(value).items() if not k.startswith("__") and not k.startswith("_abc")}
            return ("class", value.__qualname__, [(k, self.freeze(v)) for k, v in members.items()])
        if isinstance(value, BaseException):
            return ("exception", type(value).__qualname__, str(value))
        if isinstance(value, itertools.count):
            return ("count", repr(value))
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if (
            isinstance(value, (dlc.nn.Module, dlc.optim.Optimizer))
            or type(value).__module__ == own
            or dataclasses.is_dataclass(value)
        ):
            # Hooks are numbered by one counter of the process.
            members = {
                k: list(v.values()) if k.endswith(("_hooks", "_hooks_with_kwargs", "_hooks_always_called")) else v
                for k, v in getattr(value, "__dict__", {}).items()
                if not k.startswith("_compiled")
            }
            return ("object", type(value).__qualname__, [(k, self.freeze(v)) for k, v in members.items()])
        if hasattr(value, "__wrapped__"):
            return self.freeze(value.__wrapped__)
        return ("other", type(value).__qualname__)


def difference(got, want, path=""):
    """The first place where two records differ, as text, or None. Floats within a tolerance, all else exactly."""
    if isinstance(want, np.ndarray):
        return array_difference(got, want, path)
    if type(got) is not type(want):
        return f"{path}: {got!r} instead of {want!r}"
    if isinstance(want, (list, tuple)):
        if len(got) != len(want):
            return f"{path}: {short(got)} instead of {short(want)}"
        for i, (a, b) in enumerate(zip(got, want)):
            found = difference(
                a,
                b,
                f"{path}.{i}" if not isinstance(b, tuple) or not b or not isinstance(b[0], str) else f"{path}.{b[0]}",
            )
            if found:
                return found
        return None
    if isinstance(want, float):
        same = got == want or got != got and want != want or abs(got - want) <= 1e-5 * max(1.0, abs(want))
        return None if same else f"{path}: {got!r} instead of {want!r}"
    return None if got == want else f"{path}: {got!r} instead of {want!r}"


def array_difference(got, want, path):
    if not isinstance(got, np.ndarray) or got.shape != want.shape or got.dtype != want.dtype:
        return f"{path}: {short(got)} instead of {short(want)}"
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else f"{path}: {got} instead of {want}"
    finite = np.isfinite(want)
    scale = max(1.0, float(np.abs(want[finite]).max(initial=0.0)))
    same = np.array_equal(np.isfinite(got), finite) and np.array_equal(got[~finite], want[~finite], equal_nan=True)
    if same and (np.abs(got[finite].astype(np.float64) - want[finite]) <= 1e-5 * scale).all():
        return None
    return f"{path}: {got} instead of {want}"


def short(value):
    text = repr(value)
    return text if len(text) < 300 else text[:300] + " ..."
