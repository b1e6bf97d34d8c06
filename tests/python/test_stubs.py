"""The stub files name what the extension has: every function, type, method and attribute."""

import ast
import pathlib

import dlc

PACKAGE = pathlib.Path(dlc.__file__).parent


def names(tree):
    found = set()
    for node in tree:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found.update(t.id for t in node.targets)
        elif isinstance(node, ast.ImportFrom):
            found.update(a.asname or a.name for a in node.names)
    return found


def members(module, name):
    return names(next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == name).body)


EXTENSION = ast.parse((PACKAGE / "_C.pyi").read_text())
OPS = ast.parse((PACKAGE / "ops.pyi").read_text())


def test_functions_and_types():
    known = names(EXTENSION.body) | names(OPS.body)
    assert [n for n in dir(dlc._C) if n not in known and (n == "__version__" or not n.startswith("__"))] == []


def test_methods_and_attributes():
    known = members(EXTENSION, "Tensor") | members(OPS, "TensorMethods")
    internal = {
        "_make_subclass",
        "_storage_ptr",
        "_grad",
        "_version",
        "is_quantized",
        "is_sparse",
        "is_same_size",
        "is_set_to",
    }
    internal |= {"pin_memory"}
    have = {n for n in vars(dlc.Tensor) if not n.startswith("__")} - internal
    assert sorted(have - known) == []


def test_modules_of_functions():
    for name in ("nn_functional", "optim_functional"):
        have = {n for n in dir(getattr(dlc._C, name)) if not n.startswith("__")}
        assert sorted(have - members(OPS, name)) == []
