"""The op records as Python objects, read from llvm-tblgen's JSON, and the checks that every record must pass."""

import json
import re
from dataclasses import dataclass, field

KINDS = ["elementwise", "reduce", "view", "contraction", "creation", "random", "index", "composite", "structured"]
DTYPES = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"]
TENSOR_KINDS = {"T", "TMut", "TOpt", "TOptMut", "TN", "TNOpt", "TList", "TListMut", "TOptList"}
LIST_KINDS = {"TList", "TListMut", "TOptList"}
OPTIONAL_TENSORS = {"TOpt", "TOptMut", "TNOpt"}
# Names that a C++ parameter can't have.
RESERVED = {"from": "from", "default": "default_", "and": "and_", "or": "or_", "not": "not_"}


class RecordError(Exception):
    pass


@dataclass
class Param:
    name: str
    kind: str
    default: str
    mutated: bool
    choices: list
    fixed: int

    @property
    def is_tensor(self):
        return self.kind in TENSOR_KINDS

    @property
    def optional(self):
        return self.default != ""


@dataclass
class Vjp:
    wrt: list
    grad: str


@dataclass
class Sample:
    args: str
    ref: str
    range: str
    rtol: str


@dataclass
class Op:
    record: str
    mnemonic: str
    family: str
    line: int
    params: list
    results: list
    list_result: bool
    ir: bool
    fields: dict
    vjps: list
    samples: list
    scalar: object = None
    id: int = 0
    extra: dict = field(default_factory=dict)

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def cls(self):
        """The C++ stem, `AddBackward` of add_backward."""
        return "".join(w.capitalize() for w in self.mnemonic.split("_"))

    @property
    def has_scalar(self):
        return self.scalar is not None

    def param(self, name):
        return next((p for p in self.params if p.name == name), None)

    def index(self, name):
        return next(i for i, p in enumerate(self.params) if p.name == name)

    @property
    def is_view(self):
        return self.kind == "view"

    @property
    def mutates(self):
        return any(p.mutated for p in self.params)


def _dag(value):
    """(operator, [(value, name)]) with nested dags."""
    if isinstance(value, dict) and value.get("kind") == "dag":
        return (value["operator"]["def"], [(_dag(v), n) for v, n in value["args"]])
    if isinstance(value, dict) and "def" in value:
        return value["def"]
    return value


def load(path):
    with open(path) as f:
        data = json.load(f)
    ops = []
    for name in data["!instanceof"]["Dlc_Record"]:
        r = data[name]
        file, line = r["!locs"][0].rsplit(":", 1)
        params = []
        for v, pname in r["params"]["args"]:
            k = data[v["def"]]
            params.append(
                Param(pname, k["kind"], k["defaultValue"], bool(k["mutated"]), k["choices"], k["broadcastTo"])
            )
        results = [n for _, n in r["returns"]["args"]]
        listed = any(data[v["def"]]["kind"] == "TensorList" for v, _ in r["returns"]["args"])
        fields = {k: v for k, v in r.items() if isinstance(v, (str, int, list)) and not k.startswith("!")}
        fields["promotion"] = r["promotion"]["def"].replace("Promote", "")
        combine = data[r["combine"]["def"]]
        fields["combine"] = (combine["identity"], combine["function"])
        vjps = [Vjp(data[v["def"]]["wrt"], data[v["def"]]["grad"]) for v in r["vjp"]]
        samples = [Sample(*(data[s["def"]][k] for k in ("args", "ref", "range", "rtol"))) for s in r["samples"]]
        scalar = _dag(r["scalar"])
        ops.append(
            Op(
                name,
                r["mnemonic"],
                file.rsplit("/", 1)[-1].removesuffix(".td"),
                int(line),
                params,
                results,
                listed,
                bool(r["ir"]),
                fields,
                vjps,
                samples,
                None if scalar[0] == "ins" else scalar,
            )
        )
    order = {}
    for op in ops:
        order.setdefault(op.family, len(order))
    families = _family_order(data, order)
    ops.sort(key=lambda o: (families.index(o.family), o.line))
    for i, op in enumerate(ops):
        op.id = i
    check(ops)
    return ops


FAMILIES = ["Elementwise", "Logic", "Activation", "Reduce", "View", "Index", "Contraction", "Nn", "Creation", "Optim"]


def _family_order(data, seen):
    return FAMILIES + sorted(f for f in seen if f not in FAMILIES)


def identifiers(expression):
    return re.findall(r"(?<![\w.:])[A-Za-z_]\w*", re.sub(r'"[^"]*"', '""', expression))


def check(ops):
    """Raises RecordError with everything that is wrong."""
    errors = []

    def bad(op, text):
        errors.append(f"{op.family}.td:{op.line}: {op.mnemonic}: {text}")

    names = {}
    for op in ops:
        if op.mnemonic in names:
            bad(op, f"a second record of this mnemonic, the first is in line {names[op.mnemonic].line}")
        names[op.mnemonic] = op
        if op.kind not in KINDS:
            bad(op, f"kind '{op.kind}' is none of {' '.join(KINDS)}")
        if not op.summary:
            bad(op, "no summary")
        if not op.samples and not op.noSample:
            bad(op, "no sample; add one, or say why in noSample")
        if op.ir and not op.differentiable and op.vjps:
            bad(op, "differentiable = 0 but a vjp")
        if op.ir and op.differentiable and not op.vjps:
            bad(op, "no vjp; add one, or set differentiable = 0")
        if op.has_scalar and op.kind != "elementwise":
            bad(op, "a scalar function on an op that is not elementwise")
        if op.kind == "elementwise" and op.ir and not op.has_scalar and op.mnemonic != "cast":
            bad(op, "elementwise without a scalar function")
        if op.inplace and (not op.params or op.params[0].name != "self" or not op.params[0].is_tensor):
            bad(op, "an in-place form needs `self` as its first parameter")
        if op.kwonly and op.param(op.kwonly) is None:
            bad(op, f"kwonly names no parameter: {op.kwonly}")
        if op.publicResults > len(op.results):
            bad(op, "more public results than results")
        if op.list_result and (op.ir or len(op.results) != 1):
            bad(op, "a list result must be the only one, and the op can't occur in the IR")
        if not op.composite and not op.hasKernel and op.kind != "view":
            bad(op, "neither a kernel nor a rule")
        _check_order(op, bad)
        _check_vjps(op, bad)
    if errors:
        raise RecordError("\n".join(errors))


def _check_order(op, bad):
    if not (op.function or op.method):
        return
    kwonly = op.index(op.kwonly) if op.kwonly and op.param(op.kwonly) else len(op.params)
    seen = False
    for p in op.params[:kwonly]:
        if seen and not p.optional:
            bad(op, f"required parameter '{p.name}' after an optional one")
        seen = seen or p.optional


def _check_vjps(op, bad):
    known = {p.name for p in op.params} | set(op.results)
    for v in op.vjps:
        for w in v.wrt:
            p = op.param(w)
            if p is None or not p.is_tensor:
                bad(op, f"vjp of '{w}', which is no tensor parameter")
        grads = {"g"} | {"g_" + r for r in op.results}
        for name in identifiers(v.grad):
            if name.startswith("g_") and name not in grads:
                bad(op, f"vjp uses '{name}', but there is no such result")
            if name == "g" and len(op.results) > 1:
                bad(op, "vjp uses 'g', but there are several results: say g_<result>")
        called = set(re.findall(r"([A-Za-z_]\w*)\s*\(", v.grad))
        free = (
            set(identifiers(v.grad))
            - known
            - grads
            - called
            - {"needs", "true", "false", "nullptr", "dlc", "ops", "dtype"}
        )
        if free:
            bad(op, f"vjp uses names that are neither parameter nor result: {', '.join(sorted(free))}")
