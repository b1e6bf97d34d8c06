"""Random programs for twin_checks.py: nested expressions and statements over objects that log what is done to them.

`python twin_random.py FILE SEED COUNT` writes a file of programs like twin_programs.py.
"""

import random
import sys

HEAD = '''"""Random programs, seed {seed}."""

import contextlib

from twin_common import Bad, Noisy, f_everything, log, say

G = Noisy("G")
'''


class Program:
    """Writes one function; names are those of variables that may be read."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.depth = 0

    def choice(self, *options):
        return self.random.choice(options)

    def expression(self, names, depth):
        pick = self.random.random()
        if depth <= 0 or pick < 0.12:
            return self.choice(
                *names, *names, "(1)", "(0)", "(2)", "'s'", "None", "True", "G", "G.less", "()", "say(0)", "say(3)"
            )
        e = lambda: self.expression(names, depth - 1)  # noqa: E731
        makers = [
            lambda: f"({e()} {self.choice('and', 'or')} {e()})",
            lambda: f"({e()} {self.choice('and', 'or')} {e()} {self.choice('and', 'or')} {e()})",
            lambda: f"(not {e()})",
            lambda: f"({e()} {self.choice('<', '<', '==', 'is', 'in', '!=', 'is not', 'not in')} {e()})",
            lambda: f"({e()} < {e()} {self.choice('<', '==', 'is')} {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"({e()} {self.choice('+', '+', '*', '-', '%')} {e()})",
            lambda: f"(-{e()})",
            lambda: f"{e()}.{self.choice('a', 'b', 'missing')}",
            lambda: f"{e()}[{e()}]",
            lambda: f"{e()}[{e()}:{self.choice('', '2')}]",
            lambda: f"say({e()})",
            lambda: f"G({e()}, *{self.iterable(names, depth - 1)}, k={e()}, **{{'m': {e()}}})",
            lambda: f"G.{self.choice('m', 'missing')}({e()}, {e()})",
            lambda: f"f_everything({e()}, {e()}, c={e()})",
            lambda: f"[{e()}, *{self.iterable(names, depth - 1)}]",
            lambda: f"({e()}, {e()})",
            lambda: f"{{{e()!s}: {e()}}}",
            lambda: (
                'f"{'
                + f"say({self.choice(*names)})"
                + self.choice("", "!r", ":>9")
                + "} and {"
                + self.choice(*names)
                + '}"'
            ),
            lambda: self.comprehension(names, depth),
            lambda: f"(lambda p, q={e()}: {self.expression([*names, 'p', 'q'], depth - 1)})({e()})",
        ]
        return self.random.choice(makers)()

    def iterable(self, names, depth):
        return self.choice(
            f"({self.expression(names, depth)},)", "range(2)", "'ab'", "G", self.expression(names, depth)
        )

    def comprehension(self, names, depth):
        inner = [*names, "i", "j"]
        clauses = f"for i, j in [({self.expression(names, depth - 2)}, 2), (say(1), 3)]"
        if self.random.random() < 0.4:
            clauses += f" for j in {self.iterable([*names, 'i'], depth - 2)}"
        if self.random.random() < 0.6:
            clauses += f" if {self.expression(inner, depth - 1)}"
        element = self.expression(inner, depth - 1)
        before, after = self.choice(("[", "]"), ("list(", ")"), ("{say('k'): ", "}"), ("sum(1 for _ in [", "])"))
        return f"{before}{element} {clauses}{after}"

    def write(self, line):
        self.lines.append("    " * (self.depth + 1) + line)

    def block(self, names, depth, loop):
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            self.statement(names, depth - 1, loop)
        self.depth -= 1

    def target(self, names, depth):
        return self.choice("x", "y", "z", "x, y", "(x, *y), z", "G.t", f"G[{self.expression(names, 1)}]", "x, G.u")

    def statement(self, names, depth, loop):
        e = lambda: self.expression(names, self.random.randint(1, 3))  # noqa: E731
        pick = self.random.random()
        if depth <= 0 or pick < 0.4:
            lines = [
                f"out.append({e()})",
                f"{self.target(names, 1)} = {e()}",
                f"x = G.v = y = {e()}",
                f"x {self.choice('+=', '*=', '-=')} {e()}",
                f"G.w += {e()}",
                f"G[{e()}] += {e()}",
                f"del G.d, G[{e()}]",
                f"assert {e()}, {e()}",
                f"return {e()}",
                f"out.append((z := {e()}) or z)",
                f"raise ValueError({e()})",
            ]
            if loop:
                lines += [f"if {e()}: {self.choice('break', 'continue')}"] * 2
            return self.write(self.random.choice(lines))
        kind = self.choice("if", "for", "while", "try", "with", "def")
        if kind == "if":
            self.write(f"if {e()}:")
            self.block(names, depth, loop)
            self.write(f"elif {e()}:")
            self.block(names, depth, loop)
        elif kind == "for":
            self.write(f"for {self.target(names, 1)} in {self.iterable(names, 2)}:")
            self.block(names, depth, True)
            self.write("else:")
            self.block(names, depth, loop)
        elif kind == "while":
            self.write(f"while next(steps) and {e()}:")
            self.block(names, depth, True)
        elif kind == "try":
            self.write("try:")
            self.block(names, depth, loop)
            self.write(f"except ({self.choice('TypeError', 'ValueError', 'AttributeError')}, IndexError) as error:")
            self.write("    out.append(type(error).__name__)")
            self.block(names, depth, loop)
            self.write("finally:")
            self.write(f"    out.append({e()})")
        elif kind == "with":
            self.write(f"with G as {self.target(names, 1)}, contextlib.suppress(TypeError):")
            self.block(names, depth, loop)
        else:
            self.write(f"def inner(p, k={e()}):")
            self.write("    nonlocal z")
            self.write(f"    z = {self.expression([*names, 'p', 'k'], 2)}")
            self.write(f"    yield {self.expression([*names, 'p', 'k'], 2)}")
            self.write(f"out.extend(inner({e()}))")


def programs(seed, count):
    parts = [HEAD.format(seed=seed)]
    for number in range(count):
        program = Program(seed * 1000 + number)
        for _ in range(6):
            program.statement(["x", "y", "z", "a"], 3, False)
        start = [
            "    out, x, y, z, a = [], 1, Noisy('n'), [1, 2], Noisy('f', truth=False)",
            "    steps = iter([1] * 4 + [0])",
        ]
        body = ["    try:", *("    " + line for line in program.lines), "    finally:", "        log.append(str(out))"]
        parts.append("\n".join([f"\n\ndef p_{number}():", *start, *body, "    return out, x, y, z", ""]))
    parts.append('\n\nPROGRAMS = [value for name, value in sorted(globals().items()) if name.startswith("p_")]\n')
    return "".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        file.write(programs(int(sys.argv[2]), int(sys.argv[3])))
