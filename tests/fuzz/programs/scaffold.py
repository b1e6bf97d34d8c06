"""A whole program: a module with state, classes and helpers, the function to compile, and the steps that call it.

Between calls a step may change globals, attributes, defaults, hooks, modes; its arguments differ in size, type, layout
and in what they share. Each step calls `CALLS` times with equal arguments, and all steps run `ROUNDS` times: most calls meet a known state.
"""

from tests.fuzz.programs.builder import Builder

PRELUDE = """\
import collections, contextlib, dataclasses, enum, functools, itertools, logging, math, operator, os, random, sys, warnings
import dlc
import dlc.nn as nn
import dlc.nn.functional as F

logger = logging.getLogger("dlc.programs")
G_I, G_F, G_B = 2, 0.5, True
G_V = dlc.tensor([1.0, -2.0, 0.0, 3.0])
G_LI, G_D, G_S = [3, 1], {"a": 1, "b": 2}, {1, 2}
G_OD, G_Q = collections.OrderedDict(a=1, b=2, c=3), collections.deque([1, 2], maxlen=5)
LOG, SEEN, STATE, HOOKS = [], [], {}, []
COUNTER = itertools.count()
Pair = collections.namedtuple("Pair", "x k")
OPS = {"a": lambda q: q + 1, "b": lambda q: q * 2, "c": operator.neg, "z": dlc.relu}


class Odd(ValueError):
    pass


class Color(enum.Enum):
    RED = 1
    BLUE = 4


class Mode(enum.IntEnum):
    A = 0
    B = 1
    C = 2


@dataclasses.dataclass
class Conf:
    k: int = 2
    scale: float = 1.5
    tags: list = dataclasses.field(default_factory=list)


class Cfg:
    k, scale, flag, name, seen = 3, 2.0, True, "a", []

    @staticmethod
    def base(q):
        return q + Cfg.k

    @classmethod
    def scale_by(cls, q):
        return q * cls.scale


class Acc:
    made = 0

    def __init__(self, k, items=()):
        self.k, self.items, self.flag = k, list(items), False
        self.buf = dlc.full((4,), float(k % 5))

    @property
    def double(self):
        return self.k * 2

    def bump(self, by=1):
        self.k = (self.k + by) % 50
        return self.k

    def scaled(self, q):
        return q * <acc> + self.buf

    def __call__(self, q):
        return q + self.k

    def __len__(self):
        return len(self.items)

    def __eq__(self, other):
        return isinstance(other, Acc) and self.k == other.k

    __hash__ = None

    def __contains__(self, i):
        return i in self.items

    def __setitem__(self, i, value):
        self.items[i:i + 1] = [value]

    def __repr__(self):
        return f"Acc({self.k})"


class Sub(Acc):
    def bump(self, by=2):
        return super().bump(by) + 1

    def __getattr__(self, name):
        if name == "missing" or name == "extra":
            return 7
        raise AttributeError(name)


class Guard:
    def __enter__(self):
        STATE["depth"] = STATE.get("depth", 0) + 1
        return self

    def __exit__(self, kind, value, trace):
        STATE["depth"] -= 1
        return kind is not None and issubclass(kind, LookupError)


@contextlib.contextmanager
def span(name):
    LOG.append("in " + name)
    try:
        yield name
    finally:
        LOG.append("out " + name)


def logged(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        STATE["calls"] = STATE.get("calls", 0) + 1
        return fn(*args, **kwargs)

    return inner


def count(i, seen=[]):
    seen.append(i)
    del seen[:-3]
    return len(seen) + i


def total(a=1, *rest, b=2, **more):
    return a + sum(rest) + b * len(more or (1,))


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count_up(n):
    while True:
        yield n
        n += 1


def evens(items):
    for q in items:
        if q % 2:
            continue
        yield q


def pieces(x, n):
    for i in range(n):
        yield x + i


def descend(x, n):
    return x if n <= 0 else descend(x + n, n - 1)


def apply(fn, x):
    return fn(x)


def pick(*options, i=0):
    return options[i]


def global_bump():
    global G_I
    G_I = (G_I + 1) % 13


def mk(n, seed, grad=False, m=4):
    t = ((dlc.arange(n * float(m)) * 7 + seed) % 11 - 5).reshape(n, m)
    return t.requires_grad_(True) if grad else t


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4, bias=<bias>)
        with dlc.no_grad():
            self.lin.weight.copy_((dlc.arange(16.0).reshape(4, 4) * 3 % 5 - 2) * 0.25)
            if self.lin.bias is not None:
                self.lin.bias.copy_(dlc.tensor([0.5, -0.5, 1.0, 0.0]))
        self.register_buffer("buf", dlc.zeros(4))
        self.blocks = nn.ModuleList([nn.ReLU(), nn.Identity()])
        self.drop = nn.Dropout(0.5)
        self.k, self.calls = 2, 0

"""

HELPERS = {
    "helper": ("helper(x, k=2)", {"x": "T", "k": "I"}),
    "chain": ("chain(x, *ks)", {"x": "T"}),
    "twice": ("twice(x)", {"x": "T"}),
    "other_helper": ("other_helper(x, k=1)", {"x": "T", "k": "I"}),
}
MUTATIONS = [
    "G_I = {i}", "G_I = G_I + 1", "G_F = {f}", "G_B = not G_B", "G_LI.append({i})", "G_LI = [{i}, {i}]", "G_LI.clear()", "G_D['a'] = {i}", "G_D['n{k}'] = {i}", "G_D.pop('b', None)",
    "G_D = dict(reversed(G_D.items()))", "G_V.mul_(-1)", "G_V = dlc.full((4,), {f})", "G_V[1] = {i}", "G_S.add({i})", "G_OD.move_to_end(next(iter(G_OD))) if G_OD else None", "G_Q.rotate(1)",
    "Cfg.k = {i}", "Cfg.flag = not Cfg.flag", "Cfg.scale = {f}", "Cfg.name = {s}", "Cfg.seen = []", "OBJ.k = {i}", "OBJ.items = [{i}]", "OBJ.buf = dlc.ones(4) * {i}", "OBJ.flag = not OBJ.flag",
    "OBJ = Sub({i})", "OBJ = Acc({i}, [1])", "Acc.scaled = lambda self, q: q - {i}", "Acc.bump = lambda self, by=1: by", "OBJ.__class__ = Sub", "OBJ.scaled = lambda q: q + {i}", "CONF.k = {i}", "CONF = Conf({i}, {f})",
    "CONF.tags = [{s}]", "helper = other_helper", "helper, other_helper = other_helper, helper", "helper.__defaults__ = ({i},)", "twice.__code__ = thrice.__code__", "twice, thrice = thrice, twice", "MODEL.eval()", "MODEL.train()",
    "MODEL.k = {i}", "MODEL.buf.add_({i})", "MODEL.buf = dlc.full((4,), {f})", "MODEL.lin.weight.requires_grad_({b})", "MODEL.lin.weight.data = MODEL.lin.weight.data * -1", "MODEL.blocks[1] = nn.ReLU()", "MODEL.blocks.append(nn.Identity())",
    "MODEL.drop = nn.Identity()", "HOOKS.append(MODEL.register_forward_hook(lambda m, i, o: o + {i}))", "HOOKS.append(MODEL.lin.register_forward_pre_hook(lambda m, i: (i[0] * 2,)))", "HOOKS.pop().remove() if HOOKS else None",
    "MODEL.zero_grad()", "OPT.param_groups[0]['lr'] = {f}", "dlc.manual_seed({k})", "random.seed({k})", "dlc.set_grad_enabled({b})", "dlc.set_default_dtype(dlc.float64)", "dlc.set_default_dtype(dlc.float32)",
    "os.environ['DLC_FUZZ'] = {s}", "OPS['a'] = lambda q: q - {i}", "OPS = dict(OPS)", "STATE.clear()", "STATE['a'] = {i}", "LOG.clear()", "SEEN.clear()", "UNRELATED = {i}", "Acc.made = 0", "COUNTER = itertools.count({i})", "fib = lambda n: n + {i}",
    "count.__defaults__[0].append({i})", "Conf.k = {i}", "Net.extra = {i}", "len = (lambda q: {k}) if {b} else __builtins__['len']", "functools.lru_cache", "MODEL.lin = nn.Linear(4, 4, bias=False)", "dlc.set_grad_enabled(True)", "dlc.set_default_dtype(dlc.float32)",
    "Cfg.base = staticmethod(lambda q: q)", "Color.RED.__class__", "OBJ.bump({k})", "MODEL.lin.weight.grad = None",
]  # fmt: skip
GLOBAL_NAMES = "G_I, G_F, G_B, G_LI, G_D, G_V, G_S, OBJ, CONF, helper, other_helper, twice, thrice, OPS, UNRELATED, COUNTER, fib, len"
PARAMETERS = {
    "n": "I",
    "s": "S",
    "f": "F",
    "b": "B",
    "li": "LI",
    "lt": "LT",
    "d": "DI",
    "o": "O",
    "p": "P",
    "c": "C",
    "od": "OD",
}
DEFAULTS = {"n": "2", "s": "'a'", "f": "0.5", "b": "False", "li": "()", "d": "None"}


class Program(Builder):
    """Builds the source of one seed."""

    def build(self):
        self.grads = self.chance(0.2)
        self.training = self.chance(0.15)
        self.emit(
            PRELUDE.replace("<acc>", self.pick(["self.k", "2", "0.5"])).replace("<bias>", self.pick(["True", "False"]))
        )
        self.plain = True
        self.indent = 1
        self.function("def forward(self, x, k=1):", {"x": "T", "k": "I"}, self.rng.randint(0, 2), ("x",), "T")
        forward = self.lines[self.lines.index("    def forward(self, x, k=1):") :]
        del self.lines[-len(forward) :]
        self.lines += self.forward_lines(forward)
        self.indent = 0
        for name, (head, names) in HELPERS.items():
            if self.chance(0.2):
                self.emit("\n\n@logged")
            else:
                self.emit("\n")
            tail = "x = sum(ks, x)" if name == "chain" else "pass"
            self.function(f"def {head}:", names, self.rng.randint(0, 2), ("x",), "T")
            self.lines.insert(
                next(i for i in range(len(self.lines) - 1, 0, -1) if f"def {head}:" in self.lines[i]) + 1, f"    {tail}"
            )
            self.hoist_globals(f"def {head}:")
        self.emit("\n\ndef thrice(x):\n    return x * 3\n\n")
        self.plain = False
        self.emit("MODEL, OBJ, CONF = Net(), Acc(2, [1, 2]), Conf()")
        self.emit(
            f"OPT = dlc.optim.{self.pick(['SGD(MODEL.parameters(), lr=0.5)', 'SGD(MODEL.parameters(), lr=0.25, momentum=0.5)', 'Adam(MODEL.parameters(), lr=0.1, eps=1.0)'])}"
        )
        self.emit("UNRELATED = 0\n\n")
        self.main()
        self.steps()
        return "\n".join(self.lines) + "\n"

    def hoist_globals(self, head):
        """A global statement comes before everything else in a function."""
        at = next(i for i in range(len(self.lines) - 1, 0, -1) if head in self.lines[i])
        if self.lines[at + 2].lstrip().startswith("global "):
            self.lines[at + 1], self.lines[at + 2] = self.lines[at + 2], self.lines[at + 1]

    def forward_lines(self, forward):
        """The module's forward: its layers, then what was grown."""
        extra = self.pick(["x = self.lin(x).clamp(-8, 8)", "x = self.drop(self.lin(x).relu().clamp(max=8))", "for block in self.blocks: x = block(x) + self.k",
                           "x = x + self.buf if self.training else x - self.buf", "self.calls += 1", "self.buf += 1", "x = x * self.k"])  # fmt: skip
        second = self.pick(
            ["x = x + self.buf", "if self.training: self.buf.add_(1)", "x = self.lin(x).clamp(-8, 8)", "pass"]
        )
        at = 2 if len(forward) > 1 and forward[1].lstrip().startswith("global ") else 1
        return [*forward[:at], f"        {extra}", f"        {second}", *forward[at:]]

    def main(self):
        names = self.rng.sample(list(PARAMETERS), self.rng.randint(1, 4))
        required = [n for n in names if n not in DEFAULTS or self.chance(0.4)]
        self.optional = [n for n in names if n not in required]
        self.required = ["x", "y", *required]
        kinds = {"x": "T", "y": "T"} | {n: PARAMETERS[n] for n in names}
        head = ", ".join([*self.required, *(f"{n}={DEFAULTS[n]}" for n in self.optional)])
        self.star = self.chance(0.25)
        if self.star:
            head += ", *rest, **kw"
        self.kind = self.pick(["plain"] * 5 + ["method", "closure", "module", "partial", "static", "callable"])
        leaves = ["x", "y"] if self.grads else []
        count = self.rng.randint(3, 8)
        fixes = [f"{n} = {n} or {v}" for n, v in (("li", "[]"), ("d", "{}")) if n in self.optional]
        lead = [f"    {line}" for line in fixes]
        if self.star:
            lead.append(
                "    x = x + len(rest) + len(kw)"
                if self.chance(0.7)
                else "    x = functools.reduce(operator.add, rest, x)"
            )
            if self.grads:
                leaves = [n for n in leaves if n != "x"]
        if self.kind in ("plain", "partial"):
            self.function(f"def main({head}):", kinds, count, leaves)
            self.after_head(f"def main({head}):", lead)
            return self.emit(
                f"\n\ndef target():\n    return {'main' if self.kind == 'plain' else 'functools.partial(main)'}\n\n"
            )
        if self.kind == "closure":
            self.emit("def make():\n    total_, seen = 1, []\n")
            self.indent = 1
            self.function(
                f"def main({head}):", kinds | {"total_": "I", "seen": "LI"}, count, [*leaves, "total_", "seen"]
            )
            self.after_head(f"def main({head}):", ["    nonlocal total_", *lead, "    total_ = total_ * 3 % 17"])
            self.indent = 0
            return self.emit("\n    return main\n\n\ndef target():\n    return make()\n\n")
        base = "nn.Module" if self.kind == "module" else "object"
        self.emit(
            f"class Runner({base}):\n    shared = [0]\n\n    def __init__(self):\n        super().__init__()\n        self.k, self.n = 1, 0\n"
        )
        name = {"method": "run", "static": "run", "module": "forward", "callable": "__call__"}[self.kind]
        if self.kind == "static":
            self.emit("    @staticmethod")
        self.indent = 1
        first = "" if self.kind == "static" else "self, "
        self.function(f"def {name}({first}{head}):", kinds, count, leaves)
        own = (
            []
            if self.kind == "static"
            else [
                "    self.n += 1",
                self.pick(["    x = x + self.k", "    self.shared[0] += 1", "    self.k = self.n % 3"]),
            ]
        )
        if self.grads and own:
            own[1] = "    self.k = self.n % 3"
        self.after_head(f"def {name}({first}{head}):", lead + own)
        self.indent = 0
        what = {"method": "RUNNER.run", "static": "Runner.run", "module": "RUNNER", "callable": "RUNNER"}[self.kind]
        self.emit(f"\n\nRUNNER = Runner()\n\n\ndef target():\n    return {what}\n\n")

    def after_head(self, head, lines):
        """Puts lines behind a function's head and its global statement."""
        at = next(i for i in range(len(self.lines) - 1, 0, -1) if self.lines[i].strip() == head)
        margin = self.lines[at][: len(self.lines[at]) - len(self.lines[at].lstrip())]
        at += 1 + self.lines[at + 1].lstrip().startswith("global ")
        self.lines[at:at] = [margin + line for line in lines]

    # Steps.

    def tensor(self, n):
        seed, grad = self.rng.randint(0, 9), ", grad=True" if self.grads else ""
        roll = self.rng.random()
        if roll < 0.06 and not self.grads:
            return self.pick(
                [
                    f"mk(4, {seed}, m={n}).t()",
                    f"mk({n}, {seed}, m=8)[:, ::2]",
                    f"mk({n}, {seed}).double()",
                    f"mk({n * 2}, {seed})[::2]",
                    f"mk(1, {seed}).expand({n}, 4)",
                ]
            )
        if roll < 0.08:
            return f"mk({n + 1}, {seed}{grad})"  # of another size: usually an error
        return f"mk({n}, {seed}{grad})"

    def argument(self, kind, n):
        i, j = self.pick(["0", "1", "2", "3", "4", "-1", "6"]), self.pick(["1", "2", "5"])
        return {
            "T": lambda: self.tensor(n), "I": lambda: i if self.chance(0.9) else self.pick(["True", "G_I", "2.0"]), "F": lambda: self.pick(["0.5", "1.5", "-2.0", "3.0", "G_F", "2"]),
            "S": lambda: self.pick(["'a'", "'b'", "'abc'", "''"]), "B": lambda: self.pick(["True", "False"]), "LI": lambda: self.pick([f"[{i}, {j}]", "[]", f"[{i}, {j}, 3]", "G_LI", "OBJ.items"]),
            "LT": lambda: self.pick([f"[{self.tensor(n)}]", f"[{self.tensor(n)}, {self.tensor(n)}]", "[]", "[x, x]"]), "DI": lambda: self.pick([f"{{'a': {i}}}", f"{{'b': {i}, 'a': {j}}}", "G_D", "{}"]),
            "O": lambda: self.pick(["OBJ", f"Acc({i})", f"Sub({j}, [{i}])"]), "P": lambda: f"Pair({self.tensor(n)}, {i})", "C": lambda: self.pick(["CONF", f"Conf({i})", f"Conf({i}, scale=0.5, tags=['t'])"]),
            "OD": lambda: self.pick(["G_OD", f"collections.OrderedDict(a={i}, b={j})"]),
        }[kind]()  # fmt: skip

    def mutation(self):
        text = self.pick(MUTATIONS)
        for name in ("i", "k", "f", "s", "b"):
            while f"{{{name}}}" in text:
                value = (
                    self.pick(["True", "False"])
                    if name == "b"
                    else self.pick(
                        {
                            "i": ["0", "1", "2", "4", "-1"],
                            "k": ["1", "2", "3"],
                            "f": ["0.5", "2.0", "-1.0"],
                            "s": ["'a'", "'q'"],
                        }[name]
                    )
                )
                text = text.replace(f"{{{name}}}", value, 1)
        return text

    def steps(self):
        sizes = self.rng.choice([[3], [3, 4], [2, 3, 5], [1, 3], [3, 0, 2]])
        count = self.rng.randint(6, 8)
        for i in range(count):
            n = self.pick(sizes)
            self.emit(f"def step_{i}(change=True):")
            self.emit(f"    global {GLOBAL_NAMES}")
            for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
                self.emit("    with contextlib.suppress(Exception):")
                self.emit("        if change:")
                self.emit(f"            {self.mutation()}")
            self.emit(f"    x = {self.tensor(n)}")
            grad = ".detach()" if self.grads else ""
            y = self.pick([self.tensor(n)] * 6 + ["x", f"x{grad}", "x[:]"])
            if self.chance(0.12) and not self.grads:
                self.emit(f"    base = mk({n + 1}, {i})")
                self.emit("    x = base[:-1]")
                y = "base[1:]"
            positional = ["x", y, *(self.argument(PARAMETERS[r], n) for r in self.required[2:])]
            keywords = {o: self.argument(PARAMETERS[o], n) for o in self.optional if self.chance(0.6)}
            if self.star and self.chance(0.5) and len(keywords) == 0:
                positional += [self.argument(PARAMETERS[o], n) for o in self.optional] + [
                    self.argument("T", n)
                ] * self.rng.randint(0, 2)
            elif self.star and self.chance(0.4):
                keywords["other"] = "1"
            text = ", ".join(f"{k!r}: {v}" for k, v in keywords.items())
            self.emit(f"    return ({', '.join(positional)},), {{{text}}}\n\n")
        self.emit(f"STEPS = [{', '.join(f'step_{i}' for i in range(count))}]")
        self.emit(f"ROUNDS = 2\nCALLS = 3\nBACKWARD = {self.grads or self.training}")


def generate(seed):
    """The source of a seed's program: always the same one."""
    return Program(seed).build()
