"""Shrinks a failing program: statements, steps and whole functions go while it still fails in the same way."""

import ast
import contextlib
import io
import tempfile
import warnings

from tests.fuzz.programs.execute import Difference, check, write


def verdict(source):
    """What a program's runs disagree about, or None; a program that is broken by itself disagrees about nothing."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(write(source, folder, 0))
        except Difference as found:
            return found.signature
        except (Exception, SystemExit):
            return None
    return None


class Cutter(ast.NodeTransformer):
    """Applies `width` cuts from number `at` on, in the order of the tree; `count` is how many there are."""

    def __init__(self, at, width=1):
        self.at, self.width, self.count = at, width, 0

    def cut(self):
        self.count += 1
        return self.at <= self.count - 1 < self.at + self.width

    def body_of(self, statements):
        kept = []
        for statement in statements:
            if self.cut():
                continue
            if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)) and self.cut():
                kept += statement.body
                continue
            kept.append(self.visit(statement))
        return kept or [ast.Pass()]

    def generic_visit(self, node):
        for field in ("body", "orelse", "finalbody"):
            part = getattr(node, field, None)
            if isinstance(part, list) and part and isinstance(part[0], ast.stmt):
                new = self.body_of(part)
                setattr(node, field, [] if field != "body" and len(new) == 1 and isinstance(new[0], ast.Pass) else new)
        if isinstance(node, ast.Try) and not node.handlers and not node.finalbody:
            return ast.If(test=ast.Constant(True), body=node.body, orelse=[])
        if (
            isinstance(node, ast.List)
            and len(node.elts) > 1
            and isinstance(node.elts[0], ast.Name)
            and node.elts[0].id.startswith("step_")
        ):
            node.elts = [e for e in node.elts if not self.cut()] or node.elts
            return node
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            node.value.elts = [ast.Constant(0) if self.cut() else e for e in node.value.elts]
            return node
        return super().generic_visit(node)


def cuts_of(source):
    cutter = Cutter(-1)
    cutter.visit(ast.parse(source))
    return cutter.count


def apply(source, at, width):
    try:
        return ast.unparse(ast.fix_missing_locations(Cutter(at, width).visit(ast.parse(source)))) + "\n"
    except (ValueError, SyntaxError, AttributeError):
        return source


def minimize(source, fails=None, limit=2000):
    """(smallest program found, what it fails with). `fails(source)` may replace the comparison in this process."""
    fails = fails or verdict
    kind = fails(source)
    if kind is None:
        return source, None
    tries, width = 0, 64
    while tries < limit:
        changed, at = False, 0
        while at < cuts_of(source) and tries < limit:
            candidate = apply(source, at, width)
            tries += 1
            if len(candidate) < len(source) and fails(candidate) == kind:
                source, changed = candidate, True
            else:
                at += width
        if not changed and width == 1:
            break
        width = width if changed and width == 1 else max(1, width // 4)
    return source, kind
