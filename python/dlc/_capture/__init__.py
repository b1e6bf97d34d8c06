"""The instrumented twin of a Python function: the same program, with every read, call, operator and store done by a hook.

twin_of gives its code; rewrite.py lists the hooks. Pure Python, and independent of the extension.
"""

import threading
import weakref

from .kept import Store, Untwinnable, finished

__all__ = ["BINARY", "COMPARE", "HIDDEN", "UNARY", "Untwinnable", "keep_in", "twin_of"]

# By identity: code objects of two files can be equal. An entry goes when its code does.
_twins = {}
_lock = threading.RLock()
_store = None


def keep_in(load, save):
    """Twins are looked for with load(key), which gives bytes or None, and kept for other processes with save."""
    global _store
    _store = Store(load, save)


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from . import rewrite  # which parses: not needed where all twins are kept

    return getattr(rewrite, name)


def twin_of(function):
    """The code of a Python function's twin, made once per code object.

    A function of it takes the original's closure and default values; its keyword defaults are the original's and one
    value for each of HIDDEN. Raises Untwinnable, again each time.
    """
    code = getattr(function, "__code__", None)
    if code is None or not hasattr(function, "__closure__"):
        raise Untwinnable(f"{type(function).__name__} objects are no Python functions")
    known = _twins.get(id(code))
    if known is None:
        with _lock:
            known = _twins.get(id(code)) or _made(code, function.__globals__)
    result = known[1]
    if isinstance(result, tuple):
        raise Untwinnable(*result)
    return result


def _made(code, module_globals):
    try:
        result = (_store and _store.find(code)) or _anew(code, module_globals)
    except Untwinnable as error:
        result = (error.reason, error.lineno)
    key = id(code)
    reference = weakref.ref(code, lambda _: _twins.pop(key, None))
    _twins[key] = reference, result
    return _twins[key]


def _anew(code, module_globals):
    from .rewrite import twin_code
    from .source import locate

    parts = twin_code(code, locate(code, module_globals))
    result = finished(code, *parts)
    if _store:
        _store.keep(code, *parts)
    return result
