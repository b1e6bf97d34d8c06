"""Runs one program eagerly and compiled, call by call, and says what differed."""

import collections
import contextlib
import importlib.util
import io
import logging
import os
import random
import re
import sys
import traceback
import warnings
from pathlib import Path

import dlc

from tests.fuzz.programs.observe import Observer, difference

NAME = "dlc_program"
OWN_WARNINGS = ("UserWarning",)


class Difference(AssertionError):
    """Eager and compiled don't agree; `kind` is what they disagree about."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        # What a smaller program must have in common: all but places and numbers.
        self.signature = kind + (re.sub(r"step_\d+[^:]*|\d+", "", text)[:90] if kind == "outcome" else "")


def load(path):
    """A new module object made from a program's file."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


class Run:
    """All calls of a program in one mode; `records` is one dict a call."""

    def __init__(self, path, wrap):
        self.path = str(path)
        self.reset()
        self.log = io.StringIO()
        self.module = load(path)
        logger = logging.getLogger("dlc.programs")
        logger.handlers, logger.propagate = [logging.StreamHandler(self.log)], False
        logger.setLevel(logging.INFO)
        target = self.module.target()
        if not callable(target):
            raise TypeError("the program has no function")
        self.target = wrap(target)
        self.records = []
        try:
            for round_ in range(self.module.ROUNDS):
                for step in self.module.STEPS:
                    for i in range(self.module.CALLS):
                        at = {"at": f"{step.__name__}, round {round_}, call {i}"}
                        self.records.append(self.call(step, i == 0) | at)
        finally:
            self.reset()

    def reset(self):
        dlc.manual_seed(0)
        random.seed(0)
        dlc.set_grad_enabled(True)
        dlc.set_default_dtype(dlc.float32)
        os.environ.pop("DLC_FUZZ", None)

    def call(self, step, change):
        out, record = io.StringIO(), {}
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            args, kwargs = step(change)
            result = None
            try:
                result = self.target(*args, **kwargs)
                record["outcome"] = ("value",)
            except Exception as error:
                record["outcome"] = self.error(error)
            record["modes"] = (dlc.is_grad_enabled(), str(dlc.get_default_dtype()), os.environ.get("DLC_FUZZ"))
            observer = Observer(self.module)
            record["result"] = observer.freeze([result])
            record["arguments"] = observer.freeze([args, kwargs])
            record["state"] = self.state(observer)
        record["stdout"] = out.getvalue()
        record["warnings"] = [str(w.message) for w in warned if w.category is UserWarning and w.filename == self.path]
        record["log"] = self.log.getvalue()
        record["random"] = (hash(random.getstate()), dlc.get_rng_state().tolist())
        if self.module.BACKWARD:
            record["backward"] = self.backward(result, args)
        return record

    def error(self, error):
        frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.path]
        text = "" if isinstance(error, RecursionError) else str(error)  # how deep C frames nest is nobody's business
        inner = [type(e).__qualname__ if e else None for e in (error.__cause__, error.__context__)]
        return ("raise", type(error).__qualname__, text, *inner, frames[-1] if frames else None)

    def state(self, observer):
        names = [n for n in vars(self.module) if not n.startswith("__") and n not in ("STEPS", "target")]
        values = {n: getattr(self.module, n) for n in names}
        return [(n, observer.freeze(v)) for n, v in values.items() if not isinstance(v, type(os))]

    def backward(self, result, args):
        """Gradients that the caller asks for afterwards."""
        tensors = [t for t in tensors_in(result) if t.requires_grad and t.dtype.is_floating_point and t.numel()]
        outcome = None
        try:
            if tensors:
                sum((t * 0.5).double().sum() for t in tensors).backward()
        except Exception as error:
            outcome = (type(error).__qualname__, str(error).splitlines()[0])
        observer = Observer(self.module)
        parameters = list(self.module.MODEL.parameters())
        record = (
            outcome,
            observer.freeze([t.grad for t in tensors_in(args)]),
            observer.freeze([p.grad for p in parameters]),
        )
        self.module.MODEL.zero_grad()
        return record


def tensors_in(value):
    if isinstance(value, dlc.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


COUNTS = ("compilations", "breaks", "fallbacks", "hits", "captures", "replays", "traced")


def check(path, compiler=dlc.compile):
    """Compares one program's runs; raises Difference or returns how the counters moved and why calls didn't replay."""
    eager = Run(path, lambda f: f)
    before = dlc.compile_stats()
    compiled = Run(path, compiler)
    after = dlc.compile_stats()
    for got, want in zip(compiled.records, eager.records):
        for kind in want:
            found = difference(got[kind], want[kind])
            if found:
                raise Difference(kind, f"{want['at']}: {found}"[:1500])
    counts = {name: after[name] - before[name] for name in COUNTS if name in after}
    errors = sum(r["outcome"][0] == "raise" for r in eager.records)
    return counts | {"calls": len(eager.records), "raised": errors, "reasons": reasons(compiled.target)}


def reasons(target):
    """Why calls of a compiled function ran Python, without what varies, and what went wrong: {text: how often}."""
    compiled = getattr(target, "_compiled_call", target)
    if not hasattr(compiled, "events"):
        return {}
    found = collections.Counter(
        f"{e['kind']}: {e['text'].splitlines()[0]}" for e in compiled.events() if e["kind"] == "fallback"
    )
    for line in compiled.explain().splitlines():
        why = re.search(r"because (?:at \S+:\d+: )?(.*)", line)
        if why and "Python" in line.split("because")[0]:
            found["Python ran: " + re.sub(r"\d+", "N", why.group(1))[:160]] += 1
    return dict(found)


def write(source, folder, seed):
    path = Path(folder) / f"program_{seed}.py"
    path.write_text(source)
    return path
