"""What runs a model of the bench: each candidate as a zero-argument call over the same weights and inputs."""

import contextlib
import functools
import importlib
import importlib.util

import models
import numpy as np
import programs

DLC = ("dlc eager", "dlc compiled", "dlc max-autotune")
PEERS = ("torch eager", "torch.compile", "torch max-autotune", "ONNX Runtime", "OpenVINO")
NAMES = (*DLC, *PEERS)
PACKAGES = {"ONNX Runtime": "onnxruntime", "OpenVINO": "openvino"}


def package_of(candidate):
    return PACKAGES.get(candidate, candidate.replace(".", " ").split()[0])


def installed(candidate):
    return importlib.util.find_spec(package_of(candidate)) is not None


def set_threads(count, candidates=NAMES):
    for package in {package_of(c) for c in candidates} & {"dlc", "torch"}:
        importlib.import_module(package).set_num_threads(count)


def runner(candidate, model, threads, sizes=None):
    """What runs a model under a candidate: `.start()` makes it ready and returns the first outputs of three calls, then
    `.call()` runs it once. None if the candidate cannot run the model: the runtimes of ONNX files only infer.
    """
    if package_of(candidate) in ("dlc", "torch"):
        return Runner(candidate, model, sizes or {})
    if model in models.TRAINING:
        return None
    import onnx_peers

    path = onnx_peers.exported(model, sizes or {})
    return (onnx_peers.OnnxRuntime if candidate == "ONNX Runtime" else onnx_peers.OpenVino)(path, threads)


class Runner:
    """A model under dlc or PyTorch."""

    def __init__(self, candidate, model, sizes):
        self.candidate, self.training = candidate, model in models.TRAINING
        self.framework = importlib.import_module(package_of(candidate))
        self.program = programs.model(model, package_of(candidate), **sizes)
        self.inputs = [self.framework.from_numpy(x) for x in self.program.inputs]
        self.step = self._compiled(self.program.step)
        self.call = self._call()

    def start(self, calls=3):
        with self._settings():  # PyTorch compiles at the first calls
            return [self._first(self.call()) for _ in range(calls)]

    def _compiled(self, step):
        if self.candidate.endswith("eager"):
            return step
        if self.candidate.endswith("max-autotune"):
            return self.framework.compile(step, mode="max-autotune")
        return self.framework.compile(step)

    def _settings(self):
        if self.candidate != "torch max-autotune":
            return contextlib.nullcontext()
        import torch._inductor.config as config

        # Constant weights are packed and folded; a training step has none.
        return config.patch(freezing=not self.training)

    def _first(self, value):
        """The first output, as an array: logits, or a loss."""
        return np.array((value[0] if isinstance(value, tuple) else value).numpy())

    def _call(self):
        step, inputs = self.step, self.inputs
        if self.training:
            return functools.partial(step, *inputs)
        if self.program.feedback:
            return self._call_again()
        no_grad = self.framework.no_grad

        def call():
            with no_grad():
                return step(*inputs)

        return call

    def _call_again(self):
        """Outputs become inputs; after a period the first inputs are taken again."""
        step, first, feedback, period = self.step, self.inputs, self.program.feedback, self.program.period
        no_grad = self.framework.no_grad
        state = {"inputs": first, "calls": 0}

        def call():
            if state["calls"] % period == 0:
                state["inputs"] = first
            state["calls"] += 1
            with no_grad():
                value = step(*state["inputs"])
            following = list(state["inputs"])
            for output, at in feedback.items():
                following[at] = value[output]
            state["inputs"] = following
            return value

        return call


def gap(results, reference):
    """The largest difference, as a share of the largest value of the reference (at least 1)."""
    return max(np.abs(got - want).max() / max(1.0, np.abs(want).max()) for got, want in zip(results, reference))
