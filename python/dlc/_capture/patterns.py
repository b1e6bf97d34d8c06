"""`match` statements as conditions with hooks, for patterns that compare the subject as a whole: values, singletons,
captures, alternatives. Patterns that look into the subject are refused: the interpreter reads it in ways of its own.
"""

import ast

from .expressions import Expressions, constant, name
from .source import Untwinnable


class Patterns(Expressions):
    """Rewrites match statements."""

    def visit_Match(self, node):
        subject = self.place()
        result = [self.at(ast.Expr(value=self.keep(subject, self.value(node.subject))), node)]
        orelse = [self.at(ast.Expr(value=self.forget(subject)[0]), node)]
        for case in reversed(node.cases):
            body = self.block(case.body)
            orelse = [self.at(ast.If(test=self.matches(case, subject), body=body, orelse=orelse), case.pattern)]
        return result + orelse

    def matches(self, case, subject):
        """Whether the case is taken. Its names are bound before its guard is asked, and stay so if that fails."""
        tests = [self.pattern(case.pattern, subject)]
        for captured in sorted(_captured(case.pattern)):
            target = self.at(name(captured, ast.Store()), case.pattern)
            bound = ast.NamedExpr(target=target, value=self.stored(target, self.kept(subject)))
            tests.append(self.last(bound, constant(True)))
        if case.guard is not None:
            tests.append(self.condition(case.guard, case.pattern))
        tests.append(self.last(*self.forget(subject), constant(True)))
        return self.at(ast.BoolOp(op=ast.And(), values=tests), case.pattern)

    def pattern(self, node, subject):
        """The pattern as a condition on the kept subject."""
        if isinstance(node, ast.MatchValue):
            same = self.compare(node, ast.Eq(), self.kept(subject), self.value(node.value))
            return self.hook("truth", node, same)
        if isinstance(node, ast.MatchSingleton):
            same = self.compare(node, ast.Is(), self.kept(subject), constant(node.value))
            return self.hook("truth", node, same)
        if isinstance(node, ast.MatchAs):
            return constant(True) if node.pattern is None else self.pattern(node.pattern, subject)
        if isinstance(node, ast.MatchOr):
            return ast.BoolOp(op=ast.Or(), values=[self.pattern(each, subject) for each in node.patterns])
        raise Untwinnable(f"{type(node).__name__} patterns are not understood", node.lineno)


def _captured(pattern):
    return {each.name for each in ast.walk(pattern) if isinstance(each, ast.MatchAs) and each.name}
