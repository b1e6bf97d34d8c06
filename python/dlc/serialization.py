"""Saving and loading: a safetensors file whose metadata holds the structure as JSON. Nothing in a file is executed.

The format is that of the safetensors project: 8 bytes of header length (little endian), a JSON header with dtype, shape
and byte range of each tensor, then the bytes. A flat dict of tensors is written under its own keys, so that any
safetensors reader finds them; other objects (nested lists, dicts, numbers, strings) go into the metadata entry "dlc".
"""

import base64
import json
import math
import os
from collections import OrderedDict

from dlc import _C
from dlc._C import Tensor

__all__ = ["load", "save"]

_NAMES = {
    "BOOL": _C.bool,
    "U8": _C.uint8,
    "I8": _C.int8,
    "I16": _C.int16,
    "I32": _C.int32,
    "I64": _C.int64,
    "F16": _C.float16,
    "BF16": _C.bfloat16,
    "F32": _C.float32,
    "F64": _C.float64,
}
_CODES = {dtype: name for name, dtype in _NAMES.items()}
_MAX_HEADER = 100_000_000


class _Encoder:
    """Turns an object into JSON, with its tensors numbered; tensors met twice are written once."""

    def __init__(self):
        self.tensors = {}
        self.seen = {}

    def encode(self, obj, path):
        if obj is None or isinstance(obj, (bool, str)):
            return obj
        if isinstance(obj, int):
            return obj if abs(obj) < 2**53 else {"$": "int", "v": str(obj)}
        if isinstance(obj, float):
            return obj if math.isfinite(obj) else {"$": "float", "v": repr(obj)}
        if isinstance(obj, Tensor):
            return self._tensor(obj, path)
        if isinstance(obj, (list, tuple)):
            items = [self.encode(v, f"{path}.{i}" if path else str(i)) for i, v in enumerate(obj)]
            if isinstance(obj, _C.Size):
                return {"$": "size", "v": items}
            return items if isinstance(obj, list) else {"$": "tuple", "v": items}
        if isinstance(obj, dict):
            pairs = [[self.encode(k, path), self.encode(v, f"{path}.{k}" if path else str(k))] for k, v in obj.items()]
            return {"$": "odict" if isinstance(obj, OrderedDict) else "dict", "v": pairs}
        if isinstance(obj, _C.dtype):
            return {"$": "dtype", "v": obj.name}
        if isinstance(obj, bytes):
            return {"$": "bytes", "v": base64.b64encode(obj).decode()}
        if isinstance(obj, set):
            return {"$": "set", "v": [self.encode(v, path) for v in obj]}
        raise TypeError(
            f"save: cannot save a {type(obj).__module__}.{type(obj).__name__} (at {path or 'the top'}): files hold no code\n"
            "save tensors, numbers, strings, lists, tuples and dicts; for a Module, its state_dict()"
        )

    def _tensor(self, t, path):
        if id(t) not in self.seen:
            name = path or "tensor"
            while name in self.tensors or name == "__metadata__":
                name += "_"
            self.tensors[name] = t
            self.seen[id(t)] = name
        kind = "parameter" if type(t).__name__ == "Parameter" else "tensor"
        return {"$": kind, "v": self.seen[id(t)], "grad": t.requires_grad}


def save(obj, f):
    """Writes `obj` (tensors in dicts, lists and tuples, with numbers and strings) to a path or binary file."""
    encoder = _Encoder()
    tree = encoder.encode(obj, "")
    header = {"__metadata__": {"format": "dlc", "dlc": json.dumps(tree)}}
    chunks, at = [], 0
    for name, t in encoder.tensors.items():
        data = _C._tensor_bytes(t.detach())
        header[name] = {"dtype": _CODES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        chunks.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if hasattr(f, "write"):
        _write(f, text, chunks)
        return
    path = os.fspath(f)
    partial = f"{path}.{os.getpid()}.tmp"
    try:
        with open(partial, "wb") as file:
            _write(file, text, chunks)
        os.replace(partial, path)  # readers never see half a file
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _write(file, header, chunks):
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for chunk in chunks:
        file.write(chunk)


def load(f, map_location=None, *, weights_only=True, mmap=None):
    """Reads what save() wrote, or any safetensors file as a dict of tensors. RuntimeError for a file that is neither."""
    if map_location is not None and not callable(map_location):
        _C.empty(0, device=map_location)
    if hasattr(f, "read"):
        data, where = f.read(), getattr(f, "name", "the file")
    else:
        where = os.fspath(f)
        with open(f, "rb") as file:
            data = file.read()
    header, start = _read_header(data, where)
    tensors = {
        name: _read_tensor(name, entry, data, start, where) for name, entry in header.items() if name != "__metadata__"
    }
    metadata = header.get("__metadata__") or {}
    if not isinstance(metadata, dict) or "dlc" not in metadata:
        return tensors
    try:
        return _decode(json.loads(metadata["dlc"]), tensors)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _bad(where, f"its structure is damaged ({type(error).__name__}: {error})") from None


def _bad(where, what):
    return RuntimeError(f"load: {where} is no valid dlc or safetensors file: {what}\nwrite it again with dlc.save")


def _read_header(data, where):
    if len(data) < 8:
        raise _bad(where, f"it has only {len(data)} bytes")
    size = int.from_bytes(data[:8], "little")
    if size > _MAX_HEADER or 8 + size > len(data):
        raise _bad(where, f"its header of {size} bytes does not fit in its {len(data)} bytes")
    try:
        header = json.loads(data[8 : 8 + size])
    except (ValueError, RecursionError):
        raise _bad(where, "its header is no JSON") from None
    if not isinstance(header, dict):
        raise _bad(where, "its header is no JSON object")
    return header, 8 + size


def _read_tensor(name, entry, data, start, where):
    try:
        dtype = _NAMES[entry["dtype"]]
        shape = entry["shape"]
        begin, end = entry["data_offsets"]
        numbers = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        raise _bad(where, f"the entry of tensor {name!r} is damaged or of an unknown dtype") from None
    if any(type(n) is not int or n < 0 for n in numbers):
        raise _bad(where, f"the sizes of tensor {name!r} are no counts")
    need = math.prod(shape) * dtype.itemsize
    if end - begin != need or start + end > len(data):
        raise _bad(
            where, f"tensor {name!r} needs {need} bytes, but its range is [{begin}, {end}) of {len(data) - start}"
        )
    return _C._tensor_from_bytes(memoryview(data)[start + begin : start + end], dtype, shape)


def _decode(node, tensors):
    if isinstance(node, list):
        return [_decode(v, tensors) for v in node]
    if not isinstance(node, dict):
        return node
    kind, value = node["$"], node["v"]
    if kind in ("tensor", "parameter"):
        from dlc.nn import Parameter

        t = tensors[value]
        if kind == "parameter":
            return Parameter(t, requires_grad=node["grad"])
        return t.requires_grad_() if node["grad"] and not t.requires_grad else t
    if kind in ("dict", "odict"):
        make = OrderedDict if kind == "odict" else dict
        return make((_decode(k, tensors), _decode(v, tensors)) for k, v in value)
    if kind == "dtype":
        return getattr(_C, value)
    simple = {"int": int, "float": float, "bytes": base64.b64decode}
    if kind in simple:
        return simple[kind](value)
    items = [_decode(v, tensors) for v in value]
    return {"tuple": tuple, "set": set, "size": _C.Size}[kind](items)
