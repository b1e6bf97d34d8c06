"""dlc.compile: functions, methods and Modules that record what they do and run it as compiled code.

A call runs the Python function itself inside a recording region: ops on tensors are recorded instead of executed, and
what was recorded is compiled and run when the function returns or when Python needs a value (a break). The second call
of the same program finds the compiled code.
"""

import copy
import functools
import inspect
import types

from dlc import _C, config
from dlc.nn.module import Module

__all__ = [
    "compile",
    "compile_stats",
    "disable",
    "explain",
    "is_compiling",
    "list_backends",
    "list_options",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "reset",
    "reset_compile_stats",
    "set_stance",
    "wait_for_background",
]

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = {
    "dlc": "the compiler of dlc, the default",
    "inductor": "the same, under the name of PyTorch's default",
    "eager": "no compilation: what was given is returned as it is",
}
# What `options` may hold: type and meaning.
_OPTIONS = {
    "background": (bool, "calls run eagerly until a thread has compiled their code"),
    "quiet": (bool, "no line on stderr at the first graph break"),
    "name": (str, "what messages, dumps and dlc.explain call the function"),
    "tuning_seconds": ((int, float), "how long schedules of kernels may be measured, for each graph (see dlc.tuning)"),
    "tuning_progress": (bool, "whether tuning shows a bar on stderr; left out: on a terminal"),
}


def compile(  # noqa: A001
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    disable=False,
    background=False,
):
    """A compiled form of a function, method or Module; also a decorator, with or without arguments.

    fullgraph: a break or fallback raises RuntimeError instead of being worked around.
    dynamic: None lifts a size to a run-time operand when a second value of it comes, True lifts all sizes of inputs that
    are no parameters from the first call on, False never: each combination of sizes has code of its own.
    backend: "dlc" (or None), or "eager" for none.
    mode: "max-autotune" measures how kernels run best, for at most dlc.config.tuning_seconds a graph, and keeps what it
    found (see dlc.tuning). PyTorch's other names are checked, and otherwise without effect.
    options: a dict of settings, see dlc.compiler.list_options(). Not together with mode, as in PyTorch.
    background: calls run eagerly until a thread has compiled their code.
    A compiled Module is an object of the same class over the same parameters, buffers, hooks and attributes. The body of
    a generator function runs compiled from one yield to the next.
    """
    settings = _settings(fullgraph, dynamic, backend, mode, options, background)
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            background=background,
        )
    if isinstance(model, type) or not callable(model) and not isinstance(model, (staticmethod, classmethod)):
        raise TypeError(
            f"compile: expected a function, a method or a Module, not {model!r}\n"
            "give an instance, or decorate the methods of the class"
        )
    if disable or backend == "eager":
        return model
    if isinstance(model, (staticmethod, classmethod)):
        return type(model)(compile_function(model.__func__, **settings))
    if isinstance(model, Module):
        return _compile_module(model, settings)
    return compile_function(model, **settings)


def _settings(fullgraph=False, dynamic=None, backend=None, mode=None, options=None, background=False):
    """The arguments of compile(), checked, as arguments of compile_function()."""
    if mode not in _MODES:
        raise RuntimeError(f"compile: unknown mode {mode!r}\nuse one of {', '.join(map(repr, _MODES[1:]))}")
    if mode is not None and options is not None:
        raise RuntimeError("compile: `mode` and `options` are both given\ngive one of them")
    if dynamic not in (None, True, False):
        raise TypeError(f"compile: `dynamic` must be None, True or False, not {dynamic!r}\nleave it out if in doubt")
    if backend is not None and backend not in _BACKENDS:
        raise RuntimeError(
            f"compile: unknown backend {backend!r}\nuse one of {', '.join(map(repr, _BACKENDS))}, or None"
        )
    settings = {"fullgraph": bool(fullgraph), "dynamic": dynamic, "background": bool(background)}
    if options is not None and not isinstance(options, dict):
        raise TypeError(
            f"compile: `options` must be a dict, not {type(options).__name__}\nsee dlc.compiler.list_options()"
        )
    for key, value in (options or {}).items():
        if key not in _OPTIONS:
            raise RuntimeError(f"compile: unknown option {key!r}\nuse {', '.join(map(repr, _OPTIONS))}")
        if not isinstance(value, _OPTIONS[key][0]):
            kind = "number" if key == "tuning_seconds" else _OPTIONS[key][0].__name__
            raise RuntimeError(f"compile: option {key!r} must be a {kind}, not {value!r}\nit says: {_OPTIONS[key][1]}")
        settings[key] = value
    if mode is not None and mode.startswith("max-autotune"):
        settings["tuning_seconds"] = config.tuning_seconds
    if not 0 <= settings.get("tuning_seconds", 0) < float("inf"):
        raise RuntimeError(
            f"compile: option 'tuning_seconds' is {settings['tuning_seconds']!r}\ngive seconds, 0 or more"
        )
    return settings


def list_backends():
    """The names that compile() takes as `backend`."""
    return list(_BACKENDS)


def list_options():
    """The keys that compile() takes in `options`, with what they mean."""
    return {name: meaning for name, (_, meaning) in _OPTIONS.items()}


def compile_function(
    function,
    *,
    name=None,
    fullgraph=False,
    quiet=False,
    dynamic=None,
    background=False,
    tuning_seconds=0.0,
    tuning_progress=None,
):
    """The compiled form of a callable; a compiled one is returned as it is."""
    if isinstance(function, _C._Compiled) and not quiet:
        return function
    name = name or _name_of(function)
    body = _resume if inspect.isgeneratorfunction(function) else function
    compiled = _C._Compiled(body, name, fullgraph, quiet, dynamic, background, float(tuning_seconds), tuning_progress)
    if body is _resume:
        return _compiled_generator(function, compiled)
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(function, attribute):
            setattr(compiled, attribute, getattr(function, attribute))
    if inspect.isroutine(function):
        compiled.__dict__.update(getattr(function, "__dict__", {}))
    return compiled


def compile_in_place(module, *, disable=False, **arguments):
    """Module.compile: the module's own forward is compiled from now on."""
    settings = {"name": type(module).__qualname__, **_settings(**arguments)}
    if not disable and arguments.get("backend") != "eager":
        module.__dict__["forward"] = compile_function(type(module).forward.__get__(module), **settings)


def _of_method(owner, name, settings):
    return compile_function(getattr(type(owner), name).__get__(owner), **settings)


def _parts(compiled):
    """What a compiled bound method is made of; None for other compiled functions."""
    method = compiled.__wrapped__
    if not isinstance(method, types.MethodType) or isinstance(method.__self__, type):
        return None
    names = "name fullgraph quiet dynamic background tuning_seconds tuning_progress".split()
    settings = {n: getattr(compiled, n) for n in names}
    return method.__self__, method.__name__, settings


def deepcopy_compiled(compiled, memo):
    """As copy.deepcopy of a function: itself, but a bound method is bound to the copy of its object."""
    parts = _parts(compiled)
    if parts is None:
        return compiled
    owner, name, settings = parts
    return _of_method(copy.deepcopy(owner, memo), name, settings)


def reduce_compiled(compiled):
    """As pickling a function: by name, but a bound method by object and name."""
    parts = _parts(compiled)
    return compiled.__qualname__ if parts is None else (_of_method, parts)


def _name_of(function):
    if isinstance(function, functools.partial):
        return f"partial({_name_of(function.func)})"
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _resume(method, *args):
    return method(*args)


def _compiled_generator(function, resume):
    """A generator function like `function` whose body runs inside of recording regions, one from yield to yield."""

    @functools.wraps(function)
    def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        method, given = inner.send, (None,)
        try:
            while True:
                try:
                    value = resume(method, *given)
                except StopIteration as stop:
                    return stop.value
                try:
                    method, given = inner.send, ((yield value),)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    method, given = inner.throw, (error,)
        finally:
            inner.close()

    generator._dlc_compiled = resume
    resume._dlc_body = function
    return generator


def _compile_module(module, settings):
    """An object of module's class, made once per class with another __call__, that shares all of module's members."""
    if isinstance(module, _CompiledModule):
        return module
    settings = {"name": type(module).__qualname__, **settings}
    return _wrap_module(module, compile_function(module.__call__, **settings), settings)


def _wrap_module(module, call, settings):
    cls = _compiled_class(type(module))
    wrapper = cls.__new__(cls)
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    object.__setattr__(wrapper, "_compiled_call", call)
    object.__setattr__(wrapper, "_compiled_original", module)
    object.__setattr__(wrapper, "_compiled_settings", settings)
    return wrapper


class _CompiledModule:
    """What the classes of compiled modules have beside the module's own class."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        return self._compiled_call(*args, **kwargs)

    def __deepcopy__(self, memo):
        return _compile_again(copy.deepcopy(self._compiled_original, memo), self._compiled_settings)

    def __copy__(self):
        return _compile_again(copy.copy(self._compiled_original), self._compiled_settings)

    def __reduce_ex__(self, protocol):
        return _compile_again, (self._compiled_original, self._compiled_settings)


def _compile_again(module, settings):
    """Copies and pickles of compiled Modules come back through here."""
    return disable(module) if settings is None else _compile_module(module, settings)


@functools.cache
def _compiled_class(cls):
    # Slots and not attributes: the __dict__ is the original module's.
    members = {
        "__slots__": ("_compiled_call", "_compiled_original", "_compiled_settings"),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (_CompiledModule, cls), members)


def _callable_of(compiled):
    if isinstance(compiled, _CompiledModule):
        return compiled._compiled_call
    return getattr(compiled, "_dlc_compiled", compiled)


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


def reset():
    """Drops all compiled code: the next call of every compiled function starts anew."""
    _C._reset_compiler()


def wait_for_background(timeout=60.0):
    """Waits until everything queued by background=True is compiled, or for `timeout` seconds; True if it is."""
    return _C._wait_for_background(float(timeout))


# --- calls that are not compiled


class _Disabled:
    """What disable() gives: a decorator, and a context manager for one block."""

    def __init__(self, recursive):
        self.recursive = recursive

    def __call__(self, fn):
        return disable(fn, self.recursive)

    def __enter__(self):
        _C._begin_disabled(self.recursive)

    def __exit__(self, *error):
        _C._end_disabled()


def disable(fn=None, recursive=True):
    """`fn` with its ops run eagerly even when called from a compiled function; also a decorator and a context manager.

    recursive: compiled functions that it calls run eagerly too; otherwise they start regions of their own.
    """
    if fn is None:
        return _Disabled(recursive)
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(disable(fn.__func__, recursive))
    if isinstance(fn, type) or not callable(fn):
        raise TypeError(
            f"disable: expected a function, a method or a Module, not {fn!r}\ndecorate the methods of a class"
        )
    if isinstance(fn, _C._Compiled):
        fn = fn.__wrapped__
    if isinstance(fn, Module):
        original = fn._compiled_original if isinstance(fn, _CompiledModule) else fn
        return _wrap_module(original, disable(original.__call__, recursive), None)

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return _C._call_disabled(recursive, fn, *args, **kwargs)

    return wrapper


class set_stance:  # noqa: N801 (used like a function)
    """How compiled functions run from now on, or in a `with` block: "default", or "force_eager" for plain Python."""

    _STANCES = {"default": None, "force_eager": "eager"}

    def __init__(self, stance="default"):
        from dlc import config

        if stance not in self._STANCES:
            known = ", ".join(map(repr, self._STANCES))
            raise RuntimeError(f"set_stance: unknown stance {stance!r}\nuse one of {known}")
        self._config, self._before = config, config.mode
        if config.mode != "eager":
            set_stance._usual = config.mode
        config.mode = self._STANCES[stance] or getattr(set_stance, "_usual", "full")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._config.mode = self._before


# --- sizes


def _mark(function, tensor, dims, dynamic):
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(
            f"{function}: expected a Tensor, not {type(tensor).__name__}\nmark the tensors given to the function"
        )
    if dims is None:
        dims = range(tensor.dim())
    elif isinstance(dims, int):
        dims = (dims,)
    bits = 0
    for dim in dims:
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError(
                f"{function}: dim {dim} of a tensor with {tensor.dim()} dimensions\ncount from 0, or from -1"
            )
        bits |= 1 << dim % tensor.dim()
    lifted, fixed = getattr(tensor, "_dlc_dim_marks", (0, 0))
    tensor._dlc_dim_marks = (lifted | bits, fixed & ~bits) if dynamic else (lifted & ~bits, fixed | bits)
    _C._use_dim_marks()


def mark_dynamic(tensor, dim):
    """Lifts size `dim` (an int or several) of this tensor from the first compilation on, instead of the second.

    dlc.explain says so if the program takes one size only.
    """
    _mark("mark_dynamic", tensor, dim, True)


def maybe_mark_dynamic(tensor, dim):
    """As mark_dynamic; PyTorch's name for a mark that is not insisted on."""
    _mark("maybe_mark_dynamic", tensor, dim, True)


def mark_static(tensor, dim=None):
    """Never lifts size `dim` (an int, several, or None for all) of this tensor: another size has code of its own."""
    _mark("mark_static", tensor, dim, False)


from dlc._explain import Explanation, explain  # noqa: E402, F401 (needs the names above)
