"""The instrumented twin of a Python function: the same program, with every read, call, operator and store done by a hook.

twin_of gives its code; rewrite.py lists the hooks. Pure Python, and independent of the extension.
"""

import threading
import weakref

from .rewrite import BINARY, COMPARE, HIDDEN, UNARY, twin_code
from .source import Untwinnable, locate

__all__ = ["BINARY", "COMPARE", "HIDDEN", "UNARY", "Untwinnable", "twin_of"]

# By identity: code objects of two files can be equal. An entry goes when its code does.
_twins = {}
_lock = threading.RLock()


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
        result = twin_code(code, locate(code, module_globals))
    except Untwinnable as error:
        result = (error.reason, error.lineno)
    key = id(code)
    reference = weakref.ref(code, lambda _: _twins.pop(key, None))
    _twins[key] = reference, result
    return _twins[key]
