"""Fills the grammar's templates: expressions and statements of one function body at a time, as lines of Python."""

import contextlib
import os
import random
import re

from tests.fuzz.programs.grammar import EFFECTS, EXPRESSIONS, LEAVES, LITERALS, TENSOR_EFFECTS

HOLE = re.compile(r"<(=?)(\w+)(!?)(\w*)(?:;([\w:,]+))?>")
# Functions of the program's own module: they may not call one another without end.
OWN = re.compile(
    r"\b(helper|chain|descend|twice|apply|pick|OPS|MODEL|scale_by|scaled|count|total|fib)\b|<O>\(|<\w+!>\("
)
REBINDS = re.compile(r"<\w+!\w*> [-+*|]=")
GLOBALS = {
    "G_I": "<I> % 11",
    "G_F": "<F> / 2",
    "G_B": "<B>",
    "G_V": "<V>.detach()",
    "G_LI": "<LI>",
    "G_D": "<DI>",
    "G_S": "set(<LI>)",
}
NUMBERS = ("I", "F", "B", "S")


def left_out(template):
    """Templates that a hunt goes around, because what is wrong with them is known."""
    pattern = os.environ.get("FUZZ_WITHOUT")
    return bool(pattern) and re.search(pattern, template) is not None


class NoVariable(Exception):
    """A template wants a variable of a type that no one has."""


class Builder:
    """Grows one body. `names` maps the variables in scope to their types; `leaves` must not be changed in place."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.names, self.leaves = {}, set()  # and `own`: the variables at the level of the function itself
        self.own = {}
        self.lines, self.indent, self.counter = [], 0, 0
        self.plain = False  # inside one of the module's own functions
        self.assigned_globals = set()
        self.nonlocals = None  # names that a nested function may rebind, when in one
        self.in_loop = 0
        self.returns = "T"
        self.training = False
        self.budget = 0

    # Expressions.

    def pick(self, items):
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    def variables(self, kind, writable=False):
        return [n for n, k in self.names.items() if k == kind and not (writable and n in self.leaves)]

    def fill(self, template, depth):
        bound = {}

        def hole(match):
            again, kind, must_name, label, binds = match.groups()
            if again:
                return bound[kind]
            if must_name:
                known = self.variables(kind, writable=True)
                if not known:
                    raise NoVariable
                name = self.pick(known)
                if label:
                    bound[label] = name
                return name
            if kind in LITERALS:
                return self.pick(LITERALS[kind])
            if kind == "name":
                return self.pick([*self.names, "None", "OBJ"])
            if kind == "any":
                return self.pick(list(self.names) or ["None"]) if self.chance(0.7) else self.pick(["None", "1", "'a'"])
            if not binds:
                return self.expr(kind, depth)
            saved = dict(self.names)
            self.names.update(pair.split(":") for pair in binds.split(","))
            text = self.expr(kind, depth)
            self.names = saved
            return text

        return HOLE.sub(hole, template)

    def expr(self, kind, depth=None):
        depth = self.rng.choice([1, 1, 2, 2, 3]) if depth is None else depth
        known = self.variables(kind)
        if known and (depth <= 0 and kind == "T" or self.chance(0.75 if depth <= 0 else 0.35)):
            return self.pick(known)
        templates = LEAVES[kind] if depth <= 0 or kind not in EXPRESSIONS else EXPRESSIONS[kind]
        for _ in range(20):
            template = self.pick(templates)
            if self.plain and OWN.search(template) or left_out(template):
                continue
            try:
                text = self.fill(template, depth - 1)
            except NoVariable:
                continue
            # Quotes of one kind don't nest in an f-string before Python 3.12.
            if not template.startswith("f'") or self.valid(f"_ = {text}"):
                return text
        return self.pick(known) if known else self.fill(self.pick(LEAVES[kind]), 0)

    # Lines and blocks.

    def emit(self, text):
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix="v"):
        self.counter += 1
        return f"{prefix}{self.counter}"

    @contextlib.contextmanager
    def block(self, head, **binds):
        """An indented block whose own variables end with it."""
        self.emit(head)
        saved, start = dict(self.names), len(self.lines)
        self.names.update(binds)
        self.indent += 1
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.indent -= 1
        self.names = saved

    def body(self, count):
        for _ in range(count):
            self.statement()

    def valid(self, text):
        try:
            compile(
                "def f():\n    while True:\n        " + text + "\n        break\n    else:\n        yield",
                "<line>",
                "exec",
            )
            return True
        except SyntaxError:
            return False

    def emit_template(self, template):
        if self.nonlocals is not None and REBINDS.match(template):
            return False  # the name would become the nested function's own
        if left_out(template):
            return False
        for _ in range(5):
            try:
                text = self.fill(template, self.rng.choice([0, 1, 1, 2]))
            except NoVariable:
                return False
            if self.valid(text):
                self.emit(text)
                return True
        return False

    def line(self, template):
        """Emits one valid line or a harmless one."""
        return self.emit_template(template) or self.emit("pass")

    # Statements.

    STATEMENTS = (
        (6, "assign"), (6, "effect"), (2.5, "tensor_effect"), (3, "if_"), (2, "for_"), (1, "while_"), (0.7, "data_while"), (1.2, "try_"),
        (0.8, "with_"), (1.2, "nested"), (1, "generator"), (0.5, "early_return"), (0.3, "raise_"), (0.4, "assert_"), (1, "unpack"),
        (1.2, "global_"), (0.2, "delete"), (0.3, "local_class"), (0.6, "chain_of_comparisons"), (1.5, "train"), (0.5, "closures_in_loop"),
    )  # fmt: skip

    def statement(self):
        self.budget -= 1
        if self.budget < 0:
            return self.line("pass") if not self.lines else None
        compound = self.indent < 5
        while True:
            name = self.rng.choices([n for _, n in self.STATEMENTS], [w for w, _ in self.STATEMENTS])[0]
            simple = name in ("assign", "effect", "tensor_effect", "global_", "unpack", "assert_")
            if compound or simple:
                return getattr(self, name)()

    def new_or_old(self, kind):
        known = [n for n in self.variables(kind) if not n.startswith("w")]  # those count a while loop down
        if known and self.chance(0.4):
            name = self.pick(known)
            if self.nonlocals is None or name not in self.nonlocals:
                return name
        return self.fresh()

    def assign(self):
        kind = self.pick(
            ["T"] * 6 + ["I"] * 3 + ["Z", "V", "F", "B", "S", "LI", "LT", "DI", "DT", "O", "P", "C", "QI", "SI", "OD"]
        )
        name = self.new_or_old(kind)
        if name in self.names and name in self.leaves:
            self.leaves.discard(name)
        if self.emit_template(f"{name} = <{kind}>"):
            self.names[name] = kind

    def effect(self):
        for _ in range(6):
            if self.emit_template(self.pick(EFFECTS)):
                return

    def tensor_effect(self):
        for _ in range(4):
            if self.emit_template(self.pick(TENSOR_EFFECTS)):
                return

    def if_(self):
        with self.block(f"if {self.expr('B')}:"):
            self.body(self.rng.randint(1, 3))
        while self.chance(0.3):
            with self.block(f"elif {self.expr('B')}:"):
                self.body(self.rng.randint(1, 2))
        if self.chance(0.5):
            with self.block("else:"):
                self.body(self.rng.randint(1, 2))

    def for_(self):
        heads = [
            ("for {a} in range({I} % 4):", "I", None), ("for {a} in {LI}[:4]:", "I", None), ("for {a} in {LT}[:3]:", "T", None),
            ("for {a}, {b} in enumerate({LT}[:3]):", "I", "T"), ("for {a}, {b} in list({DI}.items())[:4]:", "S", "I"),
            ("for {a}, {b} in zip({LI}[:3], {LT}[:3]):", "I", "T"), ("for {a} in {T}:", "V", None), ("for {a} in pieces({T}, {I} % 3):", "T", None),
            ("for {a} in reversed({LI}[:4]):", "I", None), ("for {a} in ({T}, {T}):", "T", None), ("for {a}, ({b}, _) in zip({LI}[:3], [({T}, 1)] * 2):", "I", "T"),
            ("for {a} in itertools.chain({LI}[:2], [{I}]):", "I", None), ("for {a} in {T}.unbind(1):", "N", None), ("for {a} in range({T}.shape[0]):", "I", None),
            ("for {a} in sorted({SI})[:4]:", "I", None), ("for {a} in range(int({Z}) % 4):", "I", None),
        ]  # fmt: skip
        head, first, second = self.pick(heads)
        a, b = self.fresh(), self.fresh()
        head = head.replace("{a}", a).replace("{b}", b)
        head = re.sub(r"\{([A-Z]+)\}", lambda m: self.expr(m.group(1), 1), head)
        binds = {a: first} | ({b: second} if second else {})
        self.in_loop += 1
        with self.block(head, **binds):
            self.body(self.rng.randint(1, 3))
            if self.chance(0.35):
                self.emit(f"if {self.expr('B', 1)}: {self.pick(['break', 'continue'])}")
                self.statement()
        self.in_loop -= 1
        if self.chance(0.2):
            with self.block("else:"):
                self.body(1)

    def while_(self):
        w = self.fresh("w")
        self.emit(f"{w} = {self.expr('I', 1)} % 4")
        with self.block(f"while {w} > 0{self.pick(['', ' and ' + self.expr('B', 1)])}:", **{w: "I"}):
            self.leaves.add(w)
            self.emit(f"{w} -= 1")
            self.body(self.rng.randint(1, 2))
            if self.chance(0.3):
                self.emit(f"if {self.expr('B', 1)}: {self.pick(['break', 'continue'])}")
        if self.chance(0.25):
            with self.block("else:"):
                self.body(1)

    def data_while(self):
        known = [n for n in self.variables("T") if n not in self.leaves]
        if not known:
            return self.assign()
        x, w = self.pick(known), self.fresh("w")
        self.emit(f"{w} = 0")
        test = self.pick([f"{x}.sum() < 20", f"({x} > 2).any()", f"float({x}.abs().max()) < 6", f"int({x}.sum()) % 3"])
        with self.block(f"while {test} and {w} < 4:", **{w: "I"}):
            self.emit(f"{w} += 1")
            self.emit(
                self.pick([f"{x} = {x} + 1", f"{x} = {x} * 0.5", f"{x} = ({x} * 2).clamp(-9, 9)", f"{x} = {x} - {w}"])
            )
            if self.chance(0.5):
                self.statement()

    def try_(self):
        with self.block("try:"):
            self.body(1)
            if self.chance(0.6):
                self.emit(
                    f"if {self.expr('B', 1)}: raise {self.pick(['ValueError', 'Odd', 'KeyError'])}({self.expr('S', 1)})"
                )
            elif self.chance(0.4):
                self.line(
                    self.pick(
                        [
                            "{'a': 1}[<S>]",
                            "[1, 2][<I>]",
                            "<LI>.index(<I>)",
                            "int(<S>)",
                            "1 // (<I> % 3)",
                            "<T>.view(3, 5)",
                            "None.x",
                            "<I> + <S>",
                        ]
                    )
                )
            self.body(1)
        e = self.fresh("e")
        if self.chance(0.85):
            with self.block(f"except (ValueError, LookupError, Odd) as {e}:"):
                self.emit(
                    self.pick(
                        [f"LOG.append(str({e}))", f"LOG.append({e}.args)", f"print(type({e}).__name__, {e})", "pass"]
                    )
                )
                self.body(1)
                if self.chance(0.15):
                    self.emit(self.pick(["raise", f"raise Odd('again') from {e}", "raise RuntimeError('other')"]))
            if self.chance(0.3):
                with self.block("else:"):
                    self.body(1)
            if self.chance(0.4):
                with self.block("finally:"):
                    self.line("LOG.append(<S>)")
                    self.body(1)
        else:
            with self.block("finally:"):
                self.line("LOG.append(<I>)")
                self.body(1)

    def with_(self):
        heads = ["with dlc.no_grad():", "with dlc.enable_grad():", f"with span({self.expr('S', 1)}):", "with Guard() as g_:", "with contextlib.suppress(ValueError, LookupError):",
                 "with span('a'), Guard():", "with dlc.no_grad(), span('b'):"]  # fmt: skip
        with self.block(self.pick(heads)):
            self.body(self.rng.randint(1, 2))
            if self.chance(0.2):
                self.emit(f"if {self.expr('B', 1)}: raise ValueError('in with')")

    def nested(self):
        """A closure, called at once or later; part of them rebind a variable outside."""
        f = self.fresh("f")
        mine = [
            n
            for n in self.names
            if self.names[n] == "I" and n not in self.leaves and not n.startswith("w") and n in self.own
        ]
        with self.block(f"def {f}(p, r={self.expr('I', 1)}):", p="T", r="I"):
            outer, loop, own, kept = self.nonlocals, self.in_loop, self.own, self.returns
            self.in_loop, self.own = 0, {}
            self.nonlocals, self.returns = set(self.names) - {"p", "r"}, "T"
            if mine and self.chance(0.5):
                counter = self.pick(mine)
                self.emit(f"nonlocal {counter}")
                self.emit(f"{counter} = ({counter} + {self.pick(['1', 'r', '2'])}) % 50")
            else:
                self.line(self.pick(EFFECTS[-8:]))
            if self.chance(0.5):
                self.statement()
            self.emit(f"return {self.expr('T')}")
            self.nonlocals, self.in_loop, self.own, self.returns = outer, loop, own, kept
        self.names[f] = "FT"
        if self.chance(0.5):
            name = self.fresh()
            self.line(f"{name} = {f}(<T>, <I>)")
            self.names[name] = "T"

    def generator(self):
        g, name = self.fresh("g"), self.fresh()
        with self.block(f"def {g}(p, m):", p="T", m="I"):
            self.emit(self.pick(["got = yield p", "yield p", "LOG.append('start')"]))
            self.emit("for q in range(m % 4):")
            self.emit(f"    yield {self.pick(['p + q', 'p * q', 'p - 1', 'p.relu() + q'])}")
            if self.chance(0.3):
                self.emit("yield from [p, -p]")
            if self.chance(0.3):
                self.emit("return 'done'")
        use = self.pick([
            f"{name} = sum({g}(<T>, <I>))", f"{name} = next({g}(<T>, <I>), <T>)", f"{name} = list({g}(<T>, <I>))[-1:]", f"{name} = [q.relu() for q in {g}(<T>, <I>)]",
        ])  # fmt: skip
        if self.chance(0.25):
            it = self.fresh("it")
            self.line(f"{it} = {g}(<T>, <I>)")
            self.emit(f"next({it}, None)")
            with self.block("try:"):
                self.line(f"{it}.send(<I>)")
            with self.block("except StopIteration as stop:"):
                self.emit("LOG.append(stop.value)")
            return
        if self.emit_template(use):
            self.names[name] = "LT" if "list(" in use or "[q" in use else "N"

    def early_return(self):
        if self.nonlocals is None:
            self.emit(f"if {self.expr('B', 1)}: return {self.result()}")
        else:
            self.emit(f"if {self.expr('B', 1)}: return {self.expr('T', 1)}")

    def raise_(self):
        if self.chance(0.5):
            return self.effect()
        what = self.pick(["ValueError", "Odd", "RuntimeError", "KeyError"])
        self.emit(
            f"if {self.expr('B', 1)} and {self.expr('B', 1)}: raise {what}({self.expr('S', 1)}, {self.expr('I', 0)})"
        )

    def assert_(self):
        self.line(
            self.pick(
                [
                    "assert <T>.shape[0] < 4 or <B>, <S>",
                    "assert <I> < 60, f'big {<I>}'",
                    "assert (<T> > -50).all()",
                    "assert <Z> < 90 or <B>, 'sum'",
                ]
            )
        )

    def unpack(self):
        a, b = self.fresh(), self.fresh()
        template, kinds = self.pick([
            (f"{a}, {b} = <T>, <I>", "TI"), (f"{a}, *{b} = [<T>, <T>]", "T?"), (f"{a}, {b} = {b}, {a} = <I>, <I>", "II"), (f"({a}, {b}), _ = (<I>, <T>), 1", "IT"),
            (f"{a}, {b} = <P>", "TI"), (f"*{a}, {b} = [<T>], <T>", "?T"), (f"{a} = {b} = <T>", "TT"), (f"{a}, {b} = <T>.split(2, 1)", "NN"), (f"{a}, {b} = divmod(<I>, <k>)", "II"),
            (f"{a}, {b} = <T>.max(1)", "NN"), (f"{a}, {b} = sorted((<I>, <I>))", "II"), (f"{a} = ({b} := <I>) + 1", "II"),
        ])  # fmt: skip
        if self.emit_template(template.replace(f"{a}, {b} = {b}, {a} =", f"{a}, {b} =")):
            self.names.update({n: k for n, k in zip((a, b), kinds) if k in ("T", "I")})

    def global_(self):
        name = self.pick(list(GLOBALS))
        if self.emit_template(f"{name} = {GLOBALS[name]}"):
            self.assigned_globals.add(name)

    def delete(self):
        name = self.fresh()
        self.emit(f"{name} = {self.expr('I', 1)}")
        self.emit(f"del {name}")

    def local_class(self):
        c, name = self.fresh("C"), self.fresh()
        with self.block(f"class {c}:"):
            self.emit(f"base = {self.expr('I', 1)}")
            self.emit(f"def __init__(self, x): self.x = x + {self.pick(['1', 'self.base', 'G_I'])}")
            self.emit(f"def get(self): return self.x * {self.pick(['2', 'self.base', '0.5'])}")
        if self.emit_template(f"{name} = {c}(<T>).get()"):
            self.names[name] = "T"

    def chain_of_comparisons(self):
        name = self.fresh()
        kind, template = self.pick(
            [
                ("I", "<I> if <B> else <I> if <B> else <I>"),
                ("B", "<I> < <I> <= <I>"),
                ("T", "<T> if <B> and <B> else <T>"),
                ("I", "<B> and <I> or <I>"),
            ]
        )
        if self.emit_template(f"{name} = {template}"):
            self.names[name] = kind

    def closures_in_loop(self):
        fs, name = self.fresh("fs"), self.fresh()
        made = self.emit_template(
            f"{fs} = [{self.pick(['lambda p, q=q: p + q', 'lambda p: p * q'])} for q in range(<I> % 4)]"
        )
        if made and self.emit_template(f"{name} = functools.reduce(lambda a, f: f(a), {fs}, <T>)"):
            self.names[name] = "T"

    def train(self):
        if not self.training or self.indent > 2:
            return self.assign()
        loss = self.fresh("loss")
        self.line(
            f"{loss} = {self.pick(['(MODEL(<T>) - 1).square().mean()', '(MODEL(<T>) * <T>).clamp(-4, 4).sum()', '(MODEL.lin.weight * <V>).sum()'])}"
        )
        self.emit(self.pick([f"{loss}.backward()", f"if {loss}.requires_grad: {loss}.backward()"]))
        if self.chance(0.6):
            self.emit("OPT.step()")
        if self.chance(0.6):
            self.emit(self.pick(["OPT.zero_grad()", "OPT.zero_grad(set_to_none=False)", "MODEL.zero_grad()"]))

    # Results.

    def result(self):
        shapes = [
            "<T>", "<T>", "(<T>, <I>)", "(<T>, <I>, <S>)", "{'t': <T>, 'n': <I>, 'l': <LI>}", "[<T>, <V>]", "(<T>, (<I>, [<T>]))", "<LT>", "(<any>, <T>)", "<any>", "<P>",
            "<C>", "(<T>, <DI>, <OD>)", "(<Z>, <F>, <B>)", "<LI>", "None", "(<any>, <any>)", "<T>, <O>", "(<SI>, <QI>)", "<S>",
        ]  # fmt: skip
        for _ in range(9):
            text = self.fill(self.pick(shapes), self.rng.choice([0, 1, 2]))
            if self.valid(f"return {text}"):
                return text
        return "None"

    def function(self, head, names, count, leaves=(), tail="result"):
        """The lines of one function (or method) with `count` statements."""
        self.names, self.own, self.leaves = dict(names), dict(names), set(leaves)
        start_lines, self.lines = self.lines, []
        self.assigned_globals, self.budget = set(), count * 3
        self.indent += 1
        for _ in range(count):
            self.statement()
            self.own.update({n: k for n, k in self.names.items() if n not in self.own})
        self.emit(f"return {self.result() if tail == 'result' else self.expr(tail)}")
        self.indent -= 1
        body, self.lines = self.lines, start_lines
        self.emit(head)
        if self.assigned_globals:
            self.emit("    global " + ", ".join(sorted(self.assigned_globals)))
        self.lines += body
