"""Loads programs for one framework, by letting their import lines name it: those of examples/ and the models of the bench."""

import re
import sys
import types
from pathlib import Path

import models
import numpy as np

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
IMPORT = re.compile(r"^(?P<head>import|from) dlc\b", re.MULTILINE)


def load(name, framework="dlc", folder=EXAMPLES):
    """The module `name`.py of a folder with every import of dlc replaced by one of `framework`."""
    path = folder / f"{name}.py"
    source = IMPORT.sub(rf"\g<head> {framework}", path.read_text())
    module = types.ModuleType(f"{name}_{framework}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def model(name, framework="dlc", **sizes):
    """The models.Program of that name with the weights that every framework gets; for inference in eval mode."""
    file = next(f for f, names in models.FILES.items() if name in names)
    code = load(file, framework, HERE / "models")
    program = getattr(code, name)(**sizes)
    fill(code.torch if hasattr(code, "torch") else sys.modules[framework], program.module)
    if program.finish:
        program.finish()
    if name not in models.TRAINING:
        program.module.eval()
    return program


def fill(torch, module, seed=0):
    """Fills parameters and buffers from NumPy's generator, in the order of their names, so that all frameworks agree."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in sorted(module.state_dict().items()):
            shape, last = tuple(value.shape), name.rpartition(".")[2]
            if last == "num_batches_tracked":
                continue
            if len(shape) > 1:  # a matrix or a kernel: outputs of the size of the inputs
                values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            elif last in ("weight", "running_var"):
                values = rng.uniform(0.8, 1.2, shape)
            else:
                values = rng.uniform(-0.1, 0.1, shape)
            value.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))
