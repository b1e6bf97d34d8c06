"""What runs a model of the bench: dlc, PyTorch and its compiler, each as a zero-argument call over the same weights and inputs."""

import functools
import importlib

import numpy as np
import programs

DLC = ("dlc eager", "dlc compiled")
PEERS = ("torch eager", "torch.compile")
NAMES = (*DLC, *PEERS)


def framework_of(candidate):
    return "dlc" if candidate.startswith("dlc") else "torch"


def set_threads(count, candidates=NAMES):
    for framework in {framework_of(c) for c in candidates}:
        importlib.import_module(framework).set_num_threads(count)


class Runner:
    """One model under one candidate: `call()` runs it once, `results` are the arrays of its first calls."""

    def __init__(self, candidate, model, **sizes):
        self.candidate = candidate
        self.framework = importlib.import_module(framework_of(candidate))
        self.program = programs.model(model, framework_of(candidate), **sizes)
        self.inputs = [self.framework.from_numpy(x) for x in self.program.inputs]
        self.step = self._compiled(self.program.step)
        self.call = self._call()
        self.results = [self._first(self.call()) for _ in range(3)]

    def _compiled(self, step):
        if self.candidate == "dlc compiled":
            return self.framework.compile(step)
        if self.candidate == "torch.compile":
            return self.framework.compile(step)
        return step

    def _first(self, value):
        """The first output, as an array: logits, or a loss."""
        return np.array((value[0] if isinstance(value, tuple) else value).numpy())

    def _call(self):
        step, inputs, feedback, period = self.step, self.inputs, self.program.feedback, self.program.period
        if self.program.training:
            return functools.partial(step, *inputs)
        no_grad = self.framework.no_grad
        if not feedback:

            def call():
                with no_grad():
                    return step(*inputs)

            return call
        state = {"inputs": inputs, "calls": 0}

        def call_again():
            if state["calls"] % period == 0:
                state["inputs"] = inputs
            state["calls"] += 1
            with no_grad():
                value = step(*state["inputs"])
            following = list(state["inputs"])
            for output, at in feedback.items():
                following[at] = value[output]
            state["inputs"] = following
            return value

        return call_again


def gap(results, reference):
    """The largest difference, as a share of the largest value of the reference (at least 1)."""
    return max(np.abs(got - want).max() / max(1.0, np.abs(want).max()) for got, want in zip(results, reference))
