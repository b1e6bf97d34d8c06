"""dlc.compile: functions, methods and Modules that record what they do and run it as compiled code.

A call runs the Python function itself inside a recording region: ops on tensors are recorded instead of executed, and
what was recorded is compiled and run when the function returns or when Python needs a value (a break). The second call
of the same program finds the compiled code.
"""

import functools
import inspect

from dlc import _C
from dlc.nn.module import Module

__all__ = ["compile", "compile_stats", "disable", "explain", "is_compiling", "reset_compile_stats"]

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False):  # noqa: A001
    """A compiled form of a function, method or Module; also a decorator, with or without arguments.

    fullgraph: a break or fallback raises RuntimeError instead of being worked around.
    dynamic, backend, options: accepted for programs written for PyTorch. Sizes that vary become run-time operands by
    themselves, so there is nothing to choose.
    mode: one of PyTorch's names; checked, and otherwise without effect.
    A compiled Module is an object of the same class over the same parameters, buffers, hooks and attributes.
    """
    if mode not in _MODES:
        raise RuntimeError(f"compile: unknown mode {mode!r}\nuse one of {', '.join(map(repr, _MODES[1:]))}")
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, mode=mode, disable=disable)
    if disable:
        return model
    if isinstance(model, Module):
        return _compile_module(model, fullgraph)
    if isinstance(model, type) or not callable(model):
        raise TypeError(f"compile: expected a function, a method or a Module, not {model!r}")
    return compile_function(model, fullgraph=fullgraph)


def compile_function(function, *, name=None, fullgraph=False, quiet=False, **ignored):
    """The compiled form of a callable; a compiled one is returned as it is."""
    if isinstance(function, _C._Compiled) and not quiet:
        return function
    name = name or getattr(function, "__qualname__", None) or type(function).__qualname__
    compiled = _C._Compiled(function, name, fullgraph, quiet)
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(function, attribute):
            setattr(compiled, attribute, getattr(function, attribute))
    if inspect.isroutine(function):
        compiled.__dict__.update(getattr(function, "__dict__", {}))
    return compiled


def _compile_module(module, fullgraph):
    """An object of module's class, made once per class with another __call__, that shares all of module's members."""
    if isinstance(module, _CompiledModule):
        return module
    cls = _compiled_class(type(module))
    wrapper = cls.__new__(cls)
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    object.__setattr__(
        wrapper,
        "_compiled_call",
        compile_function(module.__call__, name=type(module).__qualname__, fullgraph=fullgraph),
    )
    object.__setattr__(wrapper, "_compiled_original", module)
    return wrapper


class _CompiledModule:
    """What the classes of compiled modules have beside the module's own class."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        return self._compiled_call(*args, **kwargs)

    def __deepcopy__(self, memo):
        import copy

        return compile(copy.deepcopy(self._compiled_original, memo), fullgraph=self._compiled_call.fullgraph)

    def __reduce_ex__(self, protocol):
        return compile, (self._compiled_original,)


@functools.cache
def _compiled_class(cls):
    # Slots and not attributes: the __dict__ is the original module's.
    members = {
        "__slots__": ("_compiled_call", "_compiled_original"),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (_CompiledModule, cls), members)


def _callable_of(compiled):
    return compiled._compiled_call if isinstance(compiled, _CompiledModule) else compiled


class _Explained:
    """Calls a function compiled and tells what happened."""

    def __init__(self, function):
        known = isinstance(function, (_CompiledModule, _C._Compiled))
        self.compiled = _callable_of(function) if known else compile_function(function, quiet=True)

    def __call__(self, *args, **kwargs):
        self.compiled(*args, **kwargs)
        explanation = Explanation(self.compiled)
        print(explanation)
        return explanation


class Explanation:
    """What dlc.explain found: `text`, `events` (dicts of kind, loc, text, action) and their counts."""

    def __init__(self, compiled):
        self.text = compiled.explain()
        self.events = compiled.events()
        self.graph_count = compiled.num_entries
        self.graph_break_count = sum(e["kind"] == "break" for e in self.events)
        self.break_reasons = [e for e in self.events if e["kind"] == "break"]

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<Explanation: {self.graph_count} graphs, {self.graph_break_count} breaks; print it, or see .text and .events>"


def explain(f):
    """`dlc.explain(f)(*args)` calls f compiled and prints its graphs, breaks, fallbacks and guards; returns them too."""
    return _Explained(f)


def graph_json(compiled):
    """The largest fused graph of a compiled function or Module as JSON: nodes are kernels and library calls."""
    return _callable_of(compiled).graph_json()


def compile_stats():
    """Counts since start or the last reset: compilations, breaks, fallbacks, hits, and more."""
    return _C._compile_stats()


def reset_compile_stats():
    """Sets all counts of compile_stats() to zero."""
    _C._reset_compile_stats()


def is_compiling():
    """True while a compiled function records."""
    return _C._is_compiling()


def disable(fn=None, recursive=True):
    """`fn` with its ops run eagerly even when called from a compiled function."""
    if fn is None:
        return disable

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return _C._call_disabled(fn, *args, **kwargs)

    return wrapper
