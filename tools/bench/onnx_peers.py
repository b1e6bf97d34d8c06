"""ONNX Runtime and OpenVINO: models exported from PyTorch, once a size, and run with the bench's inputs."""

import hashlib
import logging
import os
import warnings
from pathlib import Path

import numpy as np
import programs

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "demo-out" / "onnx"


def path_of(model, sizes):
    """Where the ONNX file of these sizes and of the models as they are lies."""
    source = b"".join(path.read_bytes() for path in [*sorted((HERE / "models").glob("*.py")), HERE / "programs.py"])
    key = hashlib.sha256(source + repr(sorted(sizes.items())).encode()).hexdigest()[:12]
    return FOLDER / f"{model}-{key}.onnx"


def forget(model, sizes):
    """Removes the files of `exported`."""
    path = path_of(model, sizes)
    for file in (path, path.with_suffix(".npz")):
        file.unlink(missing_ok=True)


def exported(model, sizes):
    """The path of the ONNX file of an inference model; beside it lie its inputs, so that running it needs no PyTorch."""
    path = path_of(model, sizes)
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        program = programs.model(model, "torch", **sizes)
        feedback = np.array(sorted(program.feedback.items()), dtype=np.int64).reshape(-1, 2)
        np.savez(path.with_suffix(".npz"), *program.inputs, feedback=feedback, period=program.period)
        _export(program, partial)
        partial.rename(path)
    return path


def _export(program, path):
    import torch

    inputs = [torch.from_numpy(x) for x in program.inputs]
    names = [f"in{i}" for i in range(len(inputs))]
    # Only a cache that grows is exported with sizes that vary: for all else static ones are the peers' best.
    dynamic = {f"in{i}": {d: f"in_{d}" for d in program.dynamic[i]} for i in program.feedback.values()}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            program.module, tuple(inputs), os.fspath(path), input_names=names, dynamic_axes=dynamic or None,
            opset_version=17, dynamo=False,
        )  # fmt: skip


class _Session:
    """What both runtimes share: the inputs, and outputs that become inputs."""

    def __init__(self, path, threads):
        self.path, self.threads, self.calls = os.fspath(path), threads, 0
        with np.load(path.with_suffix(".npz")) as file:
            self.arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 2)]
            self.feedback, self.period = dict(file["feedback"].tolist()), int(file["period"])

    def start(self, calls=3):
        self.open()
        self.first = self.inputs = [self.give(x) for x in self.arrays]
        return [np.array(self.array(self.call()[0])) for _ in range(calls)]

    def call(self):
        if not self.feedback:
            return self.run(self.inputs)
        if self.calls % self.period == 0:
            self.inputs = self.first
        self.calls += 1
        outputs = self.run(self.inputs)
        self.inputs = list(self.inputs)
        for output, at in self.feedback.items():
            self.inputs[at] = self.keep(outputs[output])
        return outputs


class OnnxRuntime(_Session):
    def open(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 3
        self.ort = onnxruntime
        self.session = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        self.names = [v.name for v in self.session.get_inputs()]
        self.outputs = [v.name for v in self.session.get_outputs()]

    def give(self, array):
        return self.ort.OrtValue.ortvalue_from_numpy(array)

    def run(self, inputs):
        return self.session.run_with_ort_values(self.outputs, dict(zip(self.names, inputs)))

    def keep(self, value):
        return value

    def array(self, value):
        return value.numpy()


class OpenVino(_Session):
    def open(self):
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": self.threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self.openvino = openvino
        self.request = openvino.Core().compile_model(self.path, "CPU", settings).create_infer_request()

    def give(self, array):
        return self.openvino.Tensor(np.ascontiguousarray(array))

    def run(self, inputs):
        for i, value in enumerate(inputs):
            self.request.set_input_tensor(i, value)
        self.request.infer()
        return [self.request.get_output_tensor(i) for i in range(len(self.request.model_outputs))]

    def keep(self, value):
        # The request writes its next outputs to the same memory.
        return self.openvino.Tensor(value.data.copy())

    def array(self, value):
        return value.data
