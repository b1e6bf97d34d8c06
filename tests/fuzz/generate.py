"""Makes random programs: Python source over a few input tensors, grown line by line by running each line eagerly.

A program is text, so that a failing one can be read and run by hand. Inputs are views of one or two base tensors, in
part of the programs overlapping ones. Values downstream of a float reduction or product are *inexact*: their last bits
may depend on the order of summation, so they are kept out of comparisons, rounding and the like.
"""

import dataclasses
import random

import dlc
import dlc.nn.functional as F
import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int8", "uint8", "int16")
SPECIAL = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0)

UNARY_EXACT = (
    "-{a}", "{a}.abs()", "{a}.neg()", "({a} * {c})", "({a} + {c})", "({c} - {a})", "({a} - {c})", "{a}.clone()",
    "{a}.square()", "dlc.clamp({a}, -1.5, 2)", "{a}.clamp(min=0.25)", "dlc.where({a} > 0, {a}, {c})",
)  # fmt: skip
UNARY_FLOAT = (
    "{a}.relu()", "{a}.tanh()", "dlc.sigmoid({a})", "{a}.exp()", "{a}.abs().sqrt()", "{a}.abs().log1p()", "{a}.sin()",
    "{a}.cos()", "({a} / {c})", "{a}.reciprocal()", "F.gelu({a})", "F.silu({a})", "{a}.erf()", "{a}.expm1()",
    "dlc.where(dlc.isnan({a}), {c}, {a})", "F.leaky_relu({a}, 0.1)", "({a} ** 2)", "{a}.log()", "{a}.rsqrt()",
)  # fmt: skip
DISCONTINUOUS = (
    "{a}.floor()", "{a}.ceil()", "{a}.round()", "{a}.trunc()", "{a}.sign()", "({a} // {c})", "({a} % {c})",
    "({a} > {c})", "({a} == {a})", "dlc.isnan({a})", "({a} <= 0)", "{a}.bool()", "({a} * 8).clamp(-100, 100).to(dlc.{int})",
)  # fmt: skip
UNARY_INT = (
    "({a} // {k})", "({a} % {k})", "({a} & 12)", "({a} | 3)", "({a} ^ 5)", "~{a}", "({a} << 1)", "({a} >> 1)",
    "({a} > 2)", "({a} == {k})", "({a} * 1.5)", "({a} / 4)", "{a}.bool()",
)  # fmt: skip
UNARY_BOOL = ("~{a}", "({a} * {c})", "{a}.float()", "{a}.to(dlc.int32)", "({a} ^ True)", "dlc.where({a}, {c}, 1.0)")
BINARY_ANY = (
    "({a} + {b})",
    "({a} * {b})",
    "dlc.minimum({a}, {b})",
    "dlc.maximum({a}, {b})",
    "dlc.where({m}, {a}, {b})",
)
BINARY_NUMBER = ("({a} - {b})", "({a} + {b} * {c})", "dlc.add({a}, {b}, alpha=2)")
BINARY_FLOAT = (
    "({a} / {b})",
    "dlc.atan2({a}, {b})",
    "dlc.lerp({a}, {b}, 0.3)",
    "dlc.addcmul({a}, {b}, {b}, value=0.5)",
)
BINARY_DISCONTINUOUS = ("({a} < {b})", "({a} >= {b})", "({a} != {b})", "({a} // {b})", "({a} % {b})")
BINARY_INT = ("({a} & {b})", "({a} | {b})", "({a} ^ {b})", "({a} // ({b} | 1))", "({a} % ({b} | 1))")
VIEWS = (
    "{a}.t()", "{a}.transpose(0, -1)", "{a}[1:]", "{a}[:-1]", "{a}[::2]", "{a}[..., 0]", "{a}[..., 1:]", "{a}[-1]",
    "{a}.unsqueeze({d})", "{a}.unsqueeze(0)", "{a}.squeeze()", "{a}.flatten()", "{a}.reshape(-1)", "{a}.view(-1)",
    "{a}.expand(3, *{a}.shape)", "{a}.expand(2, *{a}.shape)[1]", "{a}.narrow({d}, 0, 1)", "{a}.select({d}, 0)",
    "{a}.chunk(2, {d})[0]", "{a}.split(1, {d})[0]", "{a}.permute(*range({a}.dim() - 1, -1, -1))", "{a}.unfold(-1, 2, 1)",
    "{a}.detach()", "{a}.diagonal()", "{a}[None, ..., ::2]",
)  # fmt: skip
COPIES = (
    "dlc.cat([{a}, {a}], {d})", "dlc.stack([{a}, {a}], {d})", "{a}.flip({d})", "{a}.contiguous()", "dlc.tril({a})",
    "F.pad({a}, (1, 2))", "{a}.roll(1, {d})", "{a}[dlc.tensor([0, -1, 0])]", "dlc.index_select({a}, {d}, dlc.tensor([0, 0]))",
    "{a}.masked_fill({a} == {a}, {k})", "{a}.repeat(2, *[1] * max({a}.dim() - 1, 0))", "dlc.triu({a}, 1)",
)  # fmt: skip
REDUCE_EXACT = ("{a}.amax({d})", "{a}.amin({d})", "{a}.max()", "{a}.amax({d}, keepdim=True)")
REDUCE_INDEX = ("{a}.argmax({d})", "{a}.argmin()", "{a}.any({d})", "({a} > 0).all()", "({a} == {a}).sum({d})")
REDUCE = ("{a}.sum()", "{a}.sum({d})", "{a}.sum({d}, keepdim=True)", "{a}.cumsum({d})")
REDUCE_FLOAT = (
    "{a}.mean()", "{a}.mean({d})", "{a}.mean({d}, keepdim=True)", "dlc.softmax({a}, {d})", "dlc.log_softmax({a}, {d})",
    "dlc.logsumexp({a}, {d})", "{a}.var({d}, unbiased=False)", "F.layer_norm({a}, {a}.shape[-1:])",
    "(({a} * 0.1) @ {a}.transpose(-1, -2))",
)  # fmt: skip
IN_PLACE_EXACT = (
    "{a}.add_({c})", "{a}.mul_({k})", "{a}.neg_()", "{a}.zero_()", "{a}.fill_({k})", "{a}[0] = {k}", "{a}[..., 0] = {k}",
    "{a}[1:] += {k}", "{a}.clamp_(min=0)", "{a}.copy_({b})", "{a}.add_({b})", "{a}.mul_({b})", "{a}[::2] = {b}[::2]",
    "{a}[dlc.tensor([0, 0])] += {k}", "{a}.masked_fill_({a} == {a}, {k})", "{a}[:-1] = {a}[1:]", "{a}.sub_({b})",
    "{a}.t().mul_({k})", "{a}[..., 1:].copy_({b}[..., :-1])",
)  # fmt: skip
BREAKS = (
    "{v} = {a} * float({b}.float().sum() > 0)",
    "{v} = {a} + 1 if bool(({b} == {b}).any()) else {a} * 2",
    "{v} = {a} * len({a}[{a} > 0].shape)",
)


@dataclasses.dataclass
class Value:
    """What is known of a variable while the program grows. Views have the `root` of what they view."""

    name: str
    root: str
    leaf: bool = False


@dataclasses.dataclass
class Program:
    """`source` defines program(*inputs); `makers` build the base tensors and the inputs for each of two sizes."""

    seed: int
    source: str
    sizes: list
    base_dtypes: list
    inputs: list
    special: bool
    backward: bool
    overlapping: bool
    exact: list
    ops: int

    def make(self, call, dtype=None, like=None):
        """(bases, inputs) for size number `call`; `dtype` replaces that of float bases; `like` also names their values' dtype."""
        n, m = self.sizes[call]
        rng = np.random.default_rng(self.seed * 7 + call)
        bases = []
        for kind in self.base_dtypes:
            total = n * m + 16
            if kind == "bool":
                values = rng.random(total) > 0.4
            elif kind in INTS:
                values = rng.integers(0 if kind == "uint8" else -100, 100, total)
            else:
                values = np.round(rng.standard_normal(total) * 2, 3)
                if self.special:
                    where = rng.random(total) < 0.15
                    values[where] = rng.choice(SPECIAL, total)[where]
            t = dlc.from_numpy(np.ascontiguousarray(values)).to(getattr(dlc, kind))
            if dtype is not None and kind in FLOATS:
                t = t.to(dtype)
            if self.backward and kind in FLOATS:
                t.requires_grad_(True)
            bases.append(t)
        inputs = [eval(text, {"bases": bases, "n": n, "m": m, "dlc": dlc}) for text in self.inputs]
        return bases, inputs

    def function(self, wide=False):
        """The program itself; `wide`: computing in float64 throughout, for reference values."""
        source = self.source
        if wide:
            for kind in FLOATS:
                source = source.replace(f"dlc.{kind}", "dlc.float64").replace(".float()", ".double()")
        space = {"dlc": dlc, "F": F}
        exec(compile(source, f"<program {self.seed}>", "exec"), space)
        return space["program"]


class Grower:
    """Grows one program by trying random lines on real tensors and keeping those that run."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.seed = seed
        self.lines, self.values, self.inexact, self.namespace = [], [], set(), {"dlc": dlc, "F": F}
        self.counter = 0

    def pick(self, items):
        return self.rng.choice(items)

    def setup(self):
        rng = self.rng
        self.overlapping = rng.random() < 0.38
        self.backward = not self.overlapping and rng.random() < 0.55
        n, m = rng.choice([1, 2, 3, 4, 5, 7, 8, 13]), rng.choice([1, 2, 3, 4, 5, 8, 9, 17])
        self.sizes = [
            (n, m),
            (rng.choice([1, 2, 3, 6, 9, 16]), m if rng.random() < 0.6 else rng.choice([1, 2, 4, 6, 33])),
        ]
        main = "float32" if self.backward or rng.random() < 0.55 else self.pick(FLOATS[1:] + INTS)
        if self.backward and rng.random() < 0.2:
            main = "float64"
        self.base_dtypes = [main]
        if self.overlapping:
            layouts = [
                "bases[0][0:n * m].view(n, m)", "bases[0][2:n * m + 2].view(n, m)", "bases[0][1:n * m + 1].view(m, n).t()",
                "bases[0][:m].expand(n, m)", "bases[0].as_strided((n, m), (1, 2 if n > 1 else 1))", "bases[0][3:3 + m]",
            ]  # fmt: skip
            self.inputs = ["bases[0][0:n * m].view(n, m)", *(self.pick(layouts) for _ in range(rng.choice([1, 1, 2])))]
        else:
            layouts = ["[:n * m].view(n, m)", "[:n * m].view(m, n).t()", "[:m]", "[:n].view(n, 1)", "[0]", "[:n * m:2]"]
            self.inputs = ["bases[0][:n * m].view(n, m)"]
            for i in range(1, rng.choice([2, 3])):
                self.base_dtypes.append(main if rng.random() < 0.7 else self.pick(FLOATS + INTS + ("bool",)))
                self.inputs.append(f"bases[{i}]{self.pick(layouts)}")
        self.special = rng.random() < 0.3 and not self.backward

    def draft(self, ops=0):
        text = ["def program({}):".format(", ".join(f"x{i}" for i in range(len(self.inputs))))]
        text += ["    " + line for line in self.lines]
        text.append(f"    return ({', '.join(v.name for v in self.results())},)")
        exact = [v.root not in self.inexact for v in self.results()]
        return Program(self.seed, "\n".join(text) + "\n", self.sizes, self.base_dtypes, self.inputs, self.special,
                       self.backward, self.overlapping, exact, ops)  # fmt: skip

    def results(self):
        """The last variables, and those that nothing else read for a while."""
        return self.values[-6:]

    def grow(self):
        self.setup()
        program = self.draft() if self.values else Program(
            self.seed, "", self.sizes, self.base_dtypes, self.inputs, self.special, self.backward, self.overlapping, [], 0
        )  # fmt: skip
        bases, inputs = program.make(0)
        for i, t in enumerate(inputs):
            root = self.inputs[i].split("[")[1].split("]")[0]
            self.namespace[f"x{i}"] = t
            self.values.append(Value(f"x{i}", f"base{root}", leaf=self.backward))
        wanted = self.rng.randint(10, 22)
        tries = 0
        while len(self.lines) < wanted and tries < 300:
            tries += 1
            self.try_line()
        return self.draft(len(self.lines))

    def tensor(self, value):
        return self.namespace[value.name]

    def is_inexact(self, value):
        return value.root in self.inexact

    def try_line(self):
        a = self.values[-1] if self.rng.random() < 0.5 else self.pick(self.values)
        b = self.pick(self.values)
        made = self.template(a, b)
        if made is None:
            return
        template, kind = made
        name = f"v{self.counter}"
        dim = max(self.tensor(a).dim(), 1)
        masks = [v.name for v in self.values if self.tensor(v).dtype == dlc.bool]
        fields = {
            "a": a.name, "b": b.name, "v": name, "c": self.pick([0.5, -1.25, 2.0, 3.0, 0.1, 1.0, 0.0]), "k": self.pick([1, 2, 3, -2, 7]),
            "d": self.rng.randrange(dim) - (dim if self.rng.random() < 0.3 else 0), "int": self.pick(INTS),
            "m": self.pick(masks) if masks and self.rng.random() < 0.7 else f"({a.name} == {a.name})",
        }  # fmt: skip
        text = template.format(**fields)
        statement = text if kind in ("inplace", "break") else f"{name} = {text}"
        if kind == "inplace" and (a.leaf and self.backward or not self.tensor(a).numel()):
            return
        if self.run(statement, name, kind):
            self.record(statement, name, kind, a, b, "{b}" in template, fields["m"] if "{m}" in template else None)

    def run(self, statement, name, kind):
        try:
            exec(statement, self.namespace)
        except Exception:
            return False
        if kind == "inplace":
            return True
        result = self.namespace[name]
        if not isinstance(result, dlc.Tensor) or result.numel() > 4096 or result.dim() > 5:
            del self.namespace[name]
            return False
        return True

    def record(self, statement, name, kind, a, b, uses_b, mask):
        self.lines.append(statement)
        sources = [a] + ([b] if uses_b else []) + [v for v in self.values if v.name == mask]
        tainted = kind == "reduce" or any(self.is_inexact(v) for v in sources)
        if kind == "inplace":
            if tainted:
                self.inexact.add(a.root)
            return
        root = a.root if kind == "view" else name
        self.counter += 1
        result = self.namespace[name]
        if tainted and (result.dtype.is_floating_point or any(self.is_inexact(v) for v in sources)):
            self.inexact.add(root)
        self.values.append(Value(name, root, leaf=a.leaf and kind == "view"))

    def template(self, a, b):
        """A random (template, kind) that suits the operands, or None."""
        rng, t = self.rng, self.tensor(a)
        floating, boolean = t.dtype.is_floating_point, t.dtype == dlc.bool
        fuzzy = self.is_inexact(a)
        u = self.tensor(b)
        roll = rng.random()
        if roll < 0.14:
            return self.pick(VIEWS), "view"
        if roll < 0.24:
            usable = not self.is_inexact(a) and not self.is_inexact(b) or floating and u.dtype.is_floating_point
            return (self.pick(IN_PLACE_EXACT), "inplace") if usable and not boolean else None
        if roll < 0.30:
            template = self.pick(COPIES)
            return None if fuzzy and "==" in template else (template, "copy")
        if roll < 0.40:
            return self.reduction(floating, boolean, fuzzy)
        if roll < 0.42:
            return None if fuzzy or self.is_inexact(b) else (self.pick(BREAKS), "break")
        if roll < 0.68:
            return self.binary(floating, boolean, fuzzy or self.is_inexact(b), u)
        if boolean:
            return self.pick(UNARY_BOOL), "map"
        if not floating:
            return self.pick(UNARY_INT + UNARY_EXACT), "map"
        choices = UNARY_EXACT + UNARY_FLOAT + (() if fuzzy else DISCONTINUOUS)
        template = self.pick(choices)
        if fuzzy and any(
            mark in template for mark in (">", "clamp", "log()", "rsqrt", "reciprocal", "sqrt", "exp", "isnan")
        ):
            return None
        return template, "map"

    def reduction(self, floating, boolean, fuzzy):
        if boolean:
            return self.pick(("{a}.sum()", "{a}.any()", "{a}.all({d})", "{a}.sum({d})")), "map"
        roll = self.rng.random()
        if roll < 0.25:
            # Which of -0 and 0 is the larger depends on the order.
            return self.pick(REDUCE_EXACT), "reduce" if floating else "map"
        if roll < 0.40:
            return None if fuzzy else (self.pick(REDUCE_INDEX), "map")
        if not floating:
            return self.pick(REDUCE), "map"
        return self.pick(REDUCE + REDUCE_FLOAT), "reduce"

    def binary(self, floating, boolean, fuzzy, other):
        if boolean:
            return (self.pick(("({a} & {b})", "({a} | {b})", "({a} * {b})", "dlc.where({a}, {b}, 1)")), "map")
        choices = BINARY_ANY + BINARY_NUMBER
        if floating and other.dtype.is_floating_point:
            choices += BINARY_FLOAT if not fuzzy else BINARY_FLOAT[2:]
        if not fuzzy:
            choices += BINARY_DISCONTINUOUS
            if not floating and not other.dtype.is_floating_point:
                choices += BINARY_INT
        template = self.pick(choices)
        return None if fuzzy and "{m}" in template else (template, "map")


def generate(seed):
    """The program of a seed: always the same one."""
    return Grower(seed).grow()
