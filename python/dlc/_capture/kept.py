"""Twins kept from process to process, by all that a code object is made of: a code object that was proven to come from
some source has the same twin again. Light to import: a process whose twins are all kept parses no source.
"""

import marshal
import os
import sys
import types

# Stand for objects that have no literal; put in when the code is made. No source can spell them as one token.
SLICE = "\0dlc slice\0"
SUPER = "\0dlc super\0"

_COMPREHENSION_NAMES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Untwinnable(Exception):
    """This function gets no twin. reason: why, for the user; lineno: the line that says so, or None."""

    def __init__(self, reason, lineno=None):
        super().__init__(reason, lineno)
        self.reason = reason
        self.lineno = lineno

    def __str__(self):
        return self.reason if self.lineno is None else f"{self.reason} (line {self.lineno})"


class _Originals:
    """The code objects of functions and classes nested in the plain code, which the twin uses too."""

    def __init__(self, code, renamed):
        self.renamed = renamed
        self.equal = {}
        self.named = {}
        self._collect(code)

    def _collect(self, code):
        for constant_ in code.co_consts:
            if isinstance(constant_, types.CodeType):
                if constant_.co_name in _COMPREHENSION_NAMES:
                    self._collect(constant_)
                else:
                    self.equal[constant_] = constant_
                    self.named[constant_.co_name, constant_.co_firstlineno] = constant_

    def constant(self, value):
        """What stands in the twin for a constant of the code that was compiled."""
        if isinstance(value, types.CodeType):
            if value.co_name in _COMPREHENSION_NAMES:
                return _finished(value, self)
            renamed = value.co_name in self.renamed
            key = self.renamed[value.co_name] if renamed else (value.co_name, value.co_firstlineno)
            if key not in self.named:
                return value  # in code that is never reached, of which the plain compilation keeps nothing
            found = self.named[key] if renamed else self.equal.get(value)
            if found is None or found.co_freevars != value.co_freevars:
                raise Untwinnable(f"{value.co_name} is compiled differently in the twin", value.co_firstlineno)
            return found
        if isinstance(value, str):
            if value == SLICE:
                return slice
            if value == SUPER:
                return super
            qualified, _, last = value.rpartition(".<locals>.")
            if last in self.renamed:
                return f"{qualified}.<locals>.{self.renamed[last][0]}"
        return value


def _finished(code, originals, **changes):
    return code.replace(co_consts=tuple(map(originals.constant, code.co_consts)), **changes)


def finished(code, twin, renamed):
    """The twin of `code` from what was compiled for it; renamed: nested functions by their names in there."""
    return _finished(twin, _Originals(code, renamed), co_name=code.co_name)


# --- keeping

_FIELDS = (
    "co_filename co_name co_qualname co_firstlineno co_flags co_argcount co_posonlyargcount co_kwonlyargcount co_names "
    "co_varnames co_freevars co_cellvars co_exceptiontable co_linetable co_code"
).split()


def _constant(value):
    if isinstance(value, types.CodeType):
        return "code(" + _description(value) + ")"
    if isinstance(value, tuple):
        return "(" + ",".join(map(_constant, value)) + ",)"
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(map(_constant, value))) + "}"
    if isinstance(value, complex):
        return f"complex({value.real!r},{value.imag!r})"
    return repr(value)


def _description(code):
    return ",".join(repr(getattr(code, f, None)) for f in _FIELDS) + "," + _constant(code.co_consts)


def _rules():
    """What else decides a twin: this interpreter, and this folder as it is now."""
    folder = os.path.dirname(__file__)
    files = [entry for entry in os.scandir(folder) if entry.name.endswith(".py")]
    states = sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    return f"twin {sys.version} {sys.flags.optimize} {states}\n"


class Store:
    """Twins in something that keeps bytes: load(key) gives them or None, save(key, value) keeps them."""

    def __init__(self, load, save):
        self._load, self._save = load, save
        self._prefix = _rules()

    def _key(self, code):
        return (self._prefix + _description(code)).encode("utf-8", "backslashreplace")

    def find(self, code):
        """The finished twin, or None."""
        data = self._load(self._key(code))
        return None if data is None else finished(code, *marshal.loads(data))

    def keep(self, code, twin, renamed):
        self._save(self._key(code), marshal.dumps((twin, renamed)))
