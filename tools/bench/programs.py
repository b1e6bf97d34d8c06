"""Loads the training programs of examples/ for one framework, by letting their import lines name it."""

import re
import sys
import types
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
IMPORT = re.compile(r"^(?P<head>import|from) dlc\b", re.MULTILINE)


def load(name, framework="dlc"):
    """The module examples/`name`.py with every import of dlc replaced by one of `framework`."""
    path = EXAMPLES / f"{name}.py"
    source = IMPORT.sub(rf"\g<head> {framework}", path.read_text())
    module = types.ModuleType(f"{name}_{framework}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module
