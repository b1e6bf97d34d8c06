"""The comparisons of test_twin.py, run by any interpreter: `python twin_checks.py programs FILES|workloads|library`
prints a JSON object. Needs the standard library only.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
import types

import twin_reference as reference

HERE = reference.HERE


def load(name):
    """A new module of the file, so that plain functions and twins don't share what they store."""
    sys.modules.pop("twin_common", None)
    path = name if os.path.isabs(name) else os.path.join(HERE, name + ".py")
    spec = importlib.util.spec_from_file_location(os.path.basename(name).partition(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compared(function, copy):
    """None, or how the two differ; copy runs as a twin."""
    plain, other = reference.outcome(function), reference.outcome(reference.twin(copy))
    if (copy.__module__, copy.__qualname__) not in reference.entered:
        return f"no twin: {reference.refused[copy.__module__, copy.__qualname__]}"
    return None if repr(plain) == repr(other) else f"plain: {plain[1]}\ntwin: {other[1]}"


def programs(*names):
    """Programs of the files that differ in result, traceback or what they logged."""
    different, count = {}, 0
    for name in names:
        one, other = load(name), load(name)
        reference.enter_files = {one.__file__, sys.modules["twin_common"].__file__}
        count += len(one.PROGRAMS)
        for function in one.PROGRAMS:
            one.log.clear()
            other.log.clear()
            difference = compared(function, getattr(other, function.__name__))
            if difference is None and one.log != other.log:
                difference = f"plain log: {one.log}\ntwin log: {other.log}"
            if difference:
                different[function.__name__] = difference
    unused = [hook for hook in reference.NAMES if not reference.counts.get(hook)]
    return {"different": different, "count": count, "refused": list(reference.refused.values()), "unused": unused}


def workloads():
    """Workloads that differ; every Python function that they call is entered as a twin where it has one."""
    one, other = load("twin_workloads"), load("twin_workloads")
    different = {f.__name__: compared(f, getattr(other, f.__name__)) for f in one.WORKLOADS}
    different = {name: difference for name, difference in different.items() if difference}
    return {"different": different, "count": len(one.WORKLOADS), "entered": len(reference.entered)}


# Modules that can't be imported everywhere, or do something when they are.
_LEFT_OUT = {"antigravity", "idlelib", "lib2to3", "msilib", "this", "tkinter", "turtle", "turtledemo", "winreg"}


def library():
    """How many of the standard library's functions, every fourth taken, have a twin, and why others have none."""
    functions = {}

    def add(value, module):
        value = getattr(value, "__func__", value)
        if isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                add(part, module)
        elif isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            functions[id(value.__code__)] = value

    for name in sorted(sys.stdlib_module_names - _LEFT_OUT):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for value in list(vars(module).values()):
            add(value, module)
            if isinstance(value, type) and value.__module__ == name:
                for member in list(vars(value).values()):
                    add(member, module)
    chosen = list(functions.values())[::4]
    refused = {}
    start = time.perf_counter()
    for function in chosen:
        try:
            reference.capture.twin_of(function)
        except reference.capture.Untwinnable as error:
            refused[f"{function.__module__}.{function.__qualname__}"] = str(error)
    seconds = time.perf_counter() - start
    return {"count": len(chosen), "refused": refused, "milliseconds each": 1000 * seconds / len(chosen)}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
