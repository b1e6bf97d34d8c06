"""Cases from the generated sample table: arguments as NumPy data and as tensors of a dtype and layout."""

import importlib.util
import os
import pathlib
import zlib

import dlc
import numpy as np
import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODE = os.environ.get("TEST_MODE", "sample")
DTYPES = {
    "f32": (dlc.float32, np.float32), "f64": (dlc.float64, np.float64), "f16": (dlc.float16, np.float16),
    "bf16": (dlc.bfloat16, np.float32), "u8": (dlc.uint8, np.uint8), "i8": (dlc.int8, np.int8),
    "i16": (dlc.int16, np.int16), "i32": (dlc.int32, np.int32), "i64": (dlc.int64, np.int64), "bool": (dlc.bool, np.bool_),
}  # fmt: skip
FLOATS = ("f32", "f64", "f16", "bf16")
LAYOUTS = ("contiguous", "transposed", "offset", "expanded")
TOLERANCE = {"f64": 1e-11, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}


def load_table():
    """The rows of the generated table."""
    build = pathlib.Path(os.environ.get("DLC_BUILD_DIR", ROOT / "build"))
    path = build / "python" / "dlc" / "_op_samples.py"
    spec = importlib.util.spec_from_file_location("_op_samples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SAMPLES


SAMPLES = load_table()


class Data:
    """A NumPy array that is to become a tensor; `kind` says how it was made."""

    def __init__(self, array, kind):
        self.array = array
        self.kind = kind


def _builders(row, dtype, length):
    """The functions that sample texts call. `length` replaces all shapes of elementwise ops by (length,)."""
    rng = np.random.default_rng(zlib.crc32(f"{row['op']}{row['index']}{dtype}{length}".encode()))
    low, high = (float(v) for v in row["range"].split(","))
    np_type = DTYPES[dtype][1]

    def shaped(shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return shape if length is None else (length,)

    def rounded(values):
        if dtype in ("f16", "bf16"):
            values = np.round(values * 8) / 8  # exact in both, so that results do not hang on rounding of inputs
        return values

    def number(values, positive=False):
        if dtype == "bool":
            return values > 0.6 * low + 0.4 * high
        if dtype in FLOATS:
            return rounded(values).astype(np_type)
        whole = np.floor(values)
        if np_type == np.uint8 or positive:
            whole = np.abs(whole) + positive
        return whole.astype(np_type)

    def S(*shape):
        return Data(number(rng.uniform(low, high, shaped(shape))), "S")

    def P(*shape):
        top = max(high, 0.5)
        values = rng.uniform(0.25, top, shaped(shape)) if dtype in FLOATS else rng.integers(0, 3, shaped(shape))
        return Data(
            number(np.asarray(values), positive=dtype != "bool" and dtype not in FLOATS)
            if dtype != "bool"
            else np.ones(shaped(shape), bool),
            "P",
        )

    def F(*shape):
        return Data(
            rounded(rng.uniform(low, high, shaped(shape))).astype(np_type if dtype in FLOATS else np.float32), "F"
        )

    def D(*shape):
        shape = shaped(shape)
        values = rng.permutation(int(np.prod(shape))).reshape(shape)
        return Data((values.astype(np_type) / 4 if dtype in FLOATS else values).astype(np_type), "D")

    def I(shape, n):  # noqa: E743
        return Data(rng.integers(0, n, shape), "I")

    def U(shape, n):
        if len(shape) == 1:
            return Data(rng.permutation(n)[: shape[0]].astype(np.int64), "I")
        columns = [rng.permutation(n)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]
        return Data(np.stack(columns).reshape(shape).astype(np.int64), "I")

    def B(*shape):
        return Data(rng.random(shaped(shape)) < 0.5, "B")

    return {"S": S, "P": P, "F": F, "D": D, "I": I, "U": U, "B": B, "dlc": dlc, "float": float, "np": np}


def arguments(row, dtype, length=None):
    """(args, kwargs) of a sample, with Data in the places of tensors."""
    env = _builders(row, dtype, length)
    return eval(f"(lambda *args, **kwargs: (args, kwargs))({row['args']})", env)  # noqa: S307 (our own table)


def walk(value, f):
    """`value` with f applied to each Data in it."""
    if isinstance(value, Data):
        return f(value)
    if isinstance(value, (list, tuple)):
        return type(value)(walk(v, f) for v in value)
    if isinstance(value, dict):
        return {k: walk(v, f) for k, v in value.items()}
    return value


def to_tensor(data, dtype, layout="contiguous"):
    """The data as a tensor whose strides follow `layout`."""
    t = dlc.tensor(data.array)
    if data.kind != "I" and data.kind != "B" and t.is_floating_point() and dtype in FLOATS:
        t = t.to(DTYPES[dtype][0])
    if layout == "transposed" and t.dim() > 1:
        order = tuple(range(t.dim() - 1, -1, -1))
        return t.permute(*order).contiguous().permute(*order)
    if layout == "offset" and t.dim() > 0:
        wide = dlc.zeros([n + 3 for n in t.shape], dtype=t.dtype)
        view = wide[tuple(slice(2, 2 + n) for n in t.shape)]
        view.copy_(t)
        return view
    if layout == "expanded" and t.dim() > 0 and t.shape[0] > 0 and data.kind in ("S", "P"):
        return t[:1].expand(t.shape)
    return t


def function_of(row):
    """The Python spelling of an op."""
    name, owner = row["name"], dlc
    if not row["function"]:
        if row["method"]:
            return getattr(dlc.Tensor, name)
        inplace = getattr(dlc.Tensor, name + "_")
        return lambda self, *args, **kwargs: inplace(self.clone(), *args, **kwargs)
    if row["module"]:
        owner = dlc._C
        return getattr(getattr(owner, row["module"].replace(".", "_")), name)
    return getattr(owner, name)


def numpy_of(t):
    """A tensor as float64 or as its integers."""
    return t.detach().double().numpy() if t.is_floating_point() else t.detach().numpy()


def expected(row, args, kwargs, dtype, float_result):
    """The NumPy reference; integers (and bools that are data) become float64 where the op makes floats of them."""
    widen_bool = dtype == "bool" and "B(" not in row["args"]

    def plain(v, narrow):
        if isinstance(v, dlc.Tensor):
            values = numpy_of(v)
            if v.is_floating_point() or v.dtype == dlc.int64:
                return values
            if float_result and (values.dtype != bool or widen_bool):
                return values.astype(np.float64)
            return values.astype(np.int8) if narrow and values.dtype == bool else values
        if isinstance(v, (list, tuple)):
            return type(v)(plain(x, narrow) for x in v)
        return v

    def evaluate(narrow=False):
        names = {"np": np, "ref": reference, "dlc": dlc}
        names.update(zip(row["params"], (plain(a, narrow) for a in args), strict=False))
        names.update({k: plain(v, narrow) for k, v in kwargs.items()})
        with np.errstate(all="ignore"):
            return eval(row["ref"], names)  # noqa: S307 (our own table)

    try:
        return evaluate()
    except TypeError:
        if dtype != "bool":
            raise
        return evaluate(narrow=True)  # what NumPy does not define for bool, by 0 and 1
