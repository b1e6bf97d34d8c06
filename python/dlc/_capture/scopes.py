"""Which names a function binds, and how the compiler spells them: what the rewriter must know about scopes."""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def mangled(name, class_name):
    """The name as the compiler spells it inside the body of class_name (None: outside any class)."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    class_name = class_name.lstrip("_")
    return f"_{class_name}{name}" if class_name else name


def first_line(node):
    """The line a code object of this function or class starts at: that of the first decorator."""
    decorators = getattr(node, "decorator_list", None)
    return decorators[0].lineno if decorators else node.lineno


def parameters(arguments):
    """The ast.arg nodes of a signature, in the order of the code object's variables."""
    extra = [arguments.vararg, arguments.kwarg]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, extra)]


class Bindings:
    """The names that a function's (or class') own block binds or declares; nested blocks are not entered."""

    def __init__(self, node):
        self.bound = set()
        self.globals = set()
        self.nonlocals = set()
        self.deleted = set()
        if hasattr(node, "args"):
            self.bound.update(argument.arg for argument in parameters(node.args))
        for child in node.body if isinstance(node.body, list) else [node.body]:
            self._visit(child)

    def _visit(self, node):
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                self.bound.add(node.id)
            if type(node.ctx) is ast.Del:
                self.deleted.add(node.id)
            return
        if kind in (ast.Global, ast.Nonlocal):
            (self.globals if kind is ast.Global else self.nonlocals).update(node.names)
            return
        if kind in (ast.Import, ast.ImportFrom):
            self.bound.update(imported(alias) for alias in node.names)
            return
        if kind is ast.Lambda:
            self._outside(node.args)
            return
        if kind in FUNCTIONS or kind is ast.ClassDef:
            self.bound.add(node.name)
            for child in [*node.decorator_list, *getattr(node, "bases", ()), *getattr(node, "keywords", ())]:
                self._visit(child)
            if kind in FUNCTIONS:
                self._outside(node.args)
            return
        if kind in COMPREHENSIONS:
            self._comprehension(node)
            return
        if kind is ast.ExceptHandler or kind.__name__ in ("MatchAs", "MatchStar"):
            if node.name:
                self.bound.add(node.name)
        elif kind.__name__ == "MatchMapping" and node.rest:
            self.bound.add(node.rest)
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _outside(self, arguments):
        """What of a nested function's signature is evaluated here."""
        for child in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self._visit(child)

    def _comprehension(self, node):
        """Only assignment expressions bind here; the targets belong to the comprehension."""
        inner = Targets(node)
        for child in ast.walk(node):
            if isinstance(child, ast.NamedExpr) and child.target.id not in inner.names:
                self.bound.add(child.target.id)


class Targets:
    """The names that a comprehension's clauses bind."""

    def __init__(self, node):
        self.names = {
            name.id
            for clause in node.generators
            for name in ast.walk(clause.target)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }


def imported(alias):
    """The name that one item of an import statement binds."""
    return alias.asname or alias.name.partition(".")[0]
