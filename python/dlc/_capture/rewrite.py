"""Statements with hooks, and the code object made of them: the instrumented twin of a function. What a statement stores
goes through a hook unless it is a local variable; what runs as it stands is named in the function that leaves it so.

Hooks, as hidden keyword-only parameters of the twin in the order of HIDDEN. Each does the plain operation, then may log:
  _dlc_fn                           not a hook: the original function
  _dlc_gl(fn, name, value)          load of a global or builtin; _dlc_cell: of a free variable
  _dlc_cellw(fn, name, value)       the value to store in a free variable; _dlc_glw: in a global
  _dlc_attr(obj, name)              _dlc_setattr(obj, name, value), _dlc_delattr(obj, name); names are mangled already
  _dlc_item(obj, key)               _dlc_setitem(obj, key, value), _dlc_delitem(obj, key)
  _dlc_call(f, /, *args, **kw)      of a method: what _dlc_attr gave, which comes before the arguments
  _dlc_truth(x)                     a plain bool
  _dlc_it(iterable, loop)           an iterator. loop > 0: of a loop or comprehension clause, loop < 0: operand of `*`,
                                    0: of `yield from` (send, throw, close and the result must get through). What is
                                    not iterable comes back as it is, and the plain operation that follows raises.
  _dlc_unp(value, n, star)          a tuple of n values; star: the index of the one that is a list, or -1. What can't be
                                    taken apart comes back as it is, too few or too many values (n + 1 are enough) as
                                    the tuple of them; with a star the hook raises.
  _dlc_ctx(manager)                 the manager that `with` enters
  _dlc_bin(op, a, b)                _dlc_aug in place, _dlc_un(op, a), _dlc_cmp(op, a, b); op: index in the tables
  _dlc_fmt(value, conversion, spec) one field of an f-string; _dlc_join(*parts) the string
  _dlc_key(key)                     a key or element of a dict or set display or comprehension: it is hashed next
  _dlc_map(mapping)                 the operand of `**`, read as a whole next. An exact dict is read without user code.
  _dlc_exc(exception)               the operand of `raise`: an exception, or a class that the plain operation calls
  _dlc_func(function)               a nested function right after its creation, before decorators; also a class
  _dlc_imp(value, module, name)     what an import statement bound: a module, or the value of `name` in the module of
                                    that absolute name (None: not known by an absolute name)
"""

import ast
import sys

from .expressions import _CODES, BINARY, COMPARE, UNARY, constant, name
from .kept import Untwinnable
from .patterns import Patterns
from .scopes import Bindings, first_line, imported, parameters
from .source import bare, fill_places

__all__ = ["BINARY", "COMPARE", "HIDDEN", "UNARY", "twin_code"]

HIDDEN = tuple(
    "_dlc_" + hook
    for hook in (
        "fn gl cell cellw glw attr setattr delattr item setitem delitem call truth it unp ctx bin aug un cmp "
        "fmt join key map exc func imp"
    ).split()
)

_ASYNC = 0x80 | 0x100 | 0x200  # CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR


class Statements(Patterns):
    """Rewrites statements; each gives a list of new ones."""

    def block(self, statements):
        return [new for statement in statements for new in self.statement(statement)]

    def statement(self, node):
        visit = getattr(self, "visit_" + type(node).__name__, None)
        if visit is None:
            raise Untwinnable(f"{type(node).__name__} statements are not understood", node.lineno)
        result = visit(node)
        return result if isinstance(result, list) else [result]

    def visit_Expr(self, node):
        return self.at(ast.Expr(value=self.value(node.value)), node)

    def visit_same(self, node):
        return node

    visit_Pass = visit_Break = visit_Continue = visit_Global = visit_Nonlocal = visit_same

    def visit_Return(self, node):
        return self.at(ast.Return(value=self.optional(node.value)), node)

    # Stores.

    def named(self, variable, value, place):
        return self.at(ast.Assign(targets=[name(variable, ast.Store())], value=value), place)

    def moved(self, variable):
        """The value of a variable of ours, which keeps it no longer."""
        forget = ast.NamedExpr(target=name(variable, ast.Store()), value=constant(None))
        return self.first(name(variable), forget)

    def is_local_name(self, node):
        return isinstance(node, ast.Name) and self.kind_of(node.id) == "local"

    def assigned(self, target, value, place):
        """Statements that store the value, an expression that nothing else evaluates, in the target."""
        if isinstance(target, ast.Name):
            return [self.at(ast.Assign(targets=[target], value=self.stored(target, value)), place)]
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.unpacked(target, value, place)
        # The value is evaluated before the object it is stored in.
        before = []
        if not isinstance(value, ast.Constant):
            variable = self.fresh("t")
            before = [self.named(variable, value, place)]
            value = self.moved(variable)
        return [*before, self.at(ast.Expr(value=self.store_call(target, value)), target)]

    def store_call(self, target, value):
        if isinstance(target, ast.Attribute):
            return self.hook("setattr", self.attribute_place(target), *self.attribute(target), value)
        return self.hook("setitem", target, self.value(target.value), self.value(target.slice), value)

    def unpacked(self, target, value, place):
        """Names up to the first other target are stored by the plain operation, the rest one after the other."""
        targets, later, star = [], [], -1
        for index, element in enumerate(target.elts):
            if isinstance(element, ast.Starred):
                star, element = index, element.value
            if not later and self.is_local_name(element):
                targets.append(element)
            else:
                variable = self.fresh("t")
                targets.append(self.at(name(variable, ast.Store()), element))
                later.append((element, variable))
        taken = self.hook("unp", target, value, constant(len(targets)), constant(star))
        plain = self.at(ast.Tuple(elts=targets, ctx=ast.Store()), target)
        result = [self.at(ast.Assign(targets=[plain], value=taken), place)]
        for element, variable in later:
            result += self.assigned(element, self.at(self.moved(variable), element), element)
        return result

    def visit_Assign(self, node):
        value = self.value(node.value)
        if all(map(self.is_local_name, node.targets)) or self.is_parallel(node):
            return self.at(ast.Assign(targets=node.targets, value=value), node)
        if len(node.targets) == 1:
            return self.assigned(node.targets[0], value, node)
        variable = self.fresh("t")
        result = [self.named(variable, value, node)]
        for target in node.targets[:-1]:
            result += self.assigned(target, self.at(name(variable), node), node)
        return result + self.assigned(node.targets[-1], self.at(self.moved(variable), node), node)

    def is_parallel(self, node):
        """`a, b = b, a` of local variables: there is nothing to take apart."""
        target, value = node.targets[0], node.value
        return (
            len(node.targets) == 1
            and isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and all(map(self.is_local_name, target.elts))
            and not any(isinstance(element, ast.Starred) for element in value.elts)
        )

    def visit_AnnAssign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            value = None if node.value is None else self.stored(target, self.value(node.value))
            return self.at(
                ast.AnnAssign(target=target, annotation=node.annotation, value=value, simple=node.simple), node
            )
        # Never evaluated in a function, but its names count as used.
        unused = name(self.fresh("a"), ast.Store())
        result = [self.at(ast.AnnAssign(target=unused, annotation=node.annotation, value=None, simple=1), node)]
        if node.value is not None:
            return result + self.assigned(target, self.value(node.value), node)
        parts = [target.value] if isinstance(target, ast.Attribute) else [target.value, target.slice]
        return result + [self.at(ast.Expr(value=self.value(part)), node) for part in parts]

    def visit_AugAssign(self, node):
        target, op = node.target, constant(_CODES[type(node.op).__name__])
        if isinstance(target, ast.Name):
            old = self.load(self.at(name(target.id), target))
            new = self.hook("aug", node, op, old, self.value(node.value))
            return self.at(ast.Assign(targets=[target], value=self.stored(target, new)), node)
        place = self.place()
        if isinstance(target, ast.Attribute):
            obj, attribute = self.attribute(target)
            old = self.hook("attr", self.attribute_place(target), self.taken(place), attribute)
            new = self.hook("aug", node, op, old, self.value(node.value))
            call = self.hook("setattr", self.attribute_place(target), self.keep(place, obj), attribute, new)
            return self.at(ast.Expr(value=call), node)
        key = self.place()
        obj = self.keep(place, self.value(target.value))
        index = self.keep(key, self.value(target.slice))
        old = self.hook("item", target, self.taken(place), self.taken(key))
        new = self.hook("aug", node, op, old, self.value(node.value))
        return self.at(ast.Expr(value=self.hook("setitem", target, obj, index, new)), node)

    def visit_Delete(self, node):
        return [new for target in node.targets for new in self.deleted(target, node)]

    def deleted(self, target, node):
        if isinstance(target, (ast.Tuple, ast.List)):
            return [new for element in target.elts for new in self.deleted(element, node)]
        if isinstance(target, ast.Name):
            if self.kind_of(target.id) != "local":
                raise Untwinnable(f"del of {target.id}, which is no local variable", node.lineno)
            return [self.at(ast.Delete(targets=[target]), node)]
        if isinstance(target, ast.Attribute):
            call = self.hook("delattr", self.attribute_place(target), *self.attribute(target))
        else:
            call = self.hook("delitem", target, self.value(target.value), self.value(target.slice))
        return [self.at(ast.Expr(value=call), node)]

    # Control flow.

    def visit_If(self, node):
        fields = {"body": self.block(node.body), "orelse": self.block(node.orelse)}
        return self.at(ast.If(test=self.condition(node.test, node), **fields), node)

    def visit_While(self, node):
        fields = {"body": self.block(node.body), "orelse": self.block(node.orelse)}
        return self.at(ast.While(test=self.condition(node.test, node), **fields), node)

    def bound_in(self, target):
        """A plain target for a statement that binds, and what its block starts with to get the value to `target`."""
        if target is None or self.is_local_name(target):
            return target, []
        variable = self.fresh("t")
        return self.at(name(variable, ast.Store()), target), self.assigned(
            target, self.at(self.moved(variable), target), target
        )

    def visit_For(self, node):
        iterator = self.hook("it", node.iter, self.value(node.iter), constant(self.loop_id(node.iter)))
        target, start = self.bound_in(node.target)
        fields = {"body": start + self.block(node.body), "orelse": self.block(node.orelse)}
        return self.at(ast.For(target=target, iter=iterator, **fields), node)

    def visit_With(self, node):
        items, body = [], []
        for index, item in enumerate(node.items):
            target, start = self.bound_in(item.optional_vars)
            manager = self.hook("ctx", item.context_expr, self.value(item.context_expr))
            items.append(ast.withitem(context_expr=manager, optional_vars=target))
            if start and index + 1 < len(node.items):
                rest = self.at(ast.With(items=node.items[index + 1 :], body=node.body), node)
                return self.at(ast.With(items=items, body=start + self.statement(rest)), node)
            body = start
        return self.at(ast.With(items=items, body=body + self.block(node.body)), node)

    def visit_Raise(self, node):
        exc, cause = (
            None if operand is None else self.hook("exc", operand, self.value(operand))
            for operand in (node.exc, node.cause)
        )
        return self.at(ast.Raise(exc=exc, cause=cause), node)

    def visit_Try(self, node):
        handlers = []
        for handler in node.handlers:
            if handler.name and self.kind_of(handler.name) != "local":
                raise Untwinnable(f"except ... as {handler.name}, which is no local variable", handler.lineno)
            fields = {"type": self.optional(handler.type), "name": handler.name, "body": self.block(handler.body)}
            handlers.append(self.at(ast.ExceptHandler(**fields), handler))
        blocks = {field: self.block(getattr(node, field)) for field in ("body", "orelse", "finalbody")}
        return self.at(ast.Try(handlers=handlers, **blocks), node)

    def visit_Assert(self, node):
        return self.at(ast.Assert(test=self.condition(node.test, node), msg=self.optional(node.msg)), node)

    # Definitions.

    def imports(self, node):
        """The statement runs as it stands; what it bound is handed to a hook."""
        result = [node]
        for alias in node.names:
            bound = imported(alias)
            target = self.at(name(bound, ast.Store()), node)
            source = node.module if isinstance(node, ast.ImportFrom) and not node.level else None
            value = self.hook("imp", node, name(bound), constant(source), constant(alias.name))
            result.append(self.at(ast.Assign(targets=[target], value=self.stored(target, value)), node))
        return result

    visit_Import = visit_ImportFrom = imports

    def innermost(self, node):
        """The hook as a decorator: it sees the object before the others and before it has a name."""
        return self.at(name("_dlc_func"), node)

    def visit_ClassDef(self, node):
        """The body runs as it stands, and so do decorators."""
        if self.kind_of(node.name) != "local":
            raise Untwinnable(f"class {node.name}, which is no local variable", node.lineno)
        fields = {field: getattr(node, field) for field in node._fields}
        if not getattr(node, "type_params", None):
            fields["bases"] = self.values(node.bases)
            fields["keywords"] = [self.at(ast.keyword(arg=k.arg, value=self.value(k.value)), k) for k in node.keywords]
        fields["decorator_list"] = [*self.values(node.decorator_list), self.innermost(node)]
        return self.at(ast.ClassDef(**fields), node)

    def definition(self, node):
        """The body stays as it is. A decorated function gets a name of ours until its decorators were called."""
        fields = {field: getattr(node, field) for field in node._fields}
        if not getattr(node, "type_params", None):
            fields["args"] = self.signature(node)
        fields["decorator_list"] = [self.innermost(node)]
        local = self.kind_of(node.name) == "local"
        if local and not node.decorator_list:
            return self.at(type(node)(**fields), node)
        if getattr(node, "type_params", None):
            raise Untwinnable(f"the generic function {node.name} has decorators or is no local variable", node.lineno)
        result, variables = [], []
        for decorator in node.decorator_list:
            variables.append(self.fresh("t"))
            result.append(self.named(variables[-1], self.value(decorator), decorator))
        fields["name"] = self.fresh("f")
        self.renamed[fields["name"]] = (node.name, first_line(node))
        result.append(self.at(type(node)(**fields), node))
        value = self.at(self.moved(fields["name"]), node)
        for decorator, variable in zip(reversed(node.decorator_list), reversed(variables)):
            place = node if sys.version_info < (3, 11) else decorator
            value = self.hook("call", place, self.moved(variable), value)
        return result + self.assigned(self.at(name(node.name, ast.Store()), node), value, node)

    visit_FunctionDef = visit_AsyncFunctionDef = definition


def twin_code(code, located):
    """What finished() makes the twin of `code` from, whose source `located` is: code, and the functions that have other
    names in it. Raises Untwinnable."""
    if code.co_flags & _ASYNC:
        raise Untwinnable(f"{code.co_name} is a coroutine or an asynchronous generator", code.co_firstlineno)
    if any(argument.arg in HIDDEN for argument in parameters(located.node.args)):
        raise Untwinnable("a parameter has a reserved name", code.co_firstlineno)
    try:
        rewriter = Statements(code, Bindings(located.node), located.class_name)
        twin = located.compiled(_rewritten(located.node, rewriter))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Untwinnable(f"the twin of {code.co_name} can't be compiled: {error}", code.co_firstlineno) from None
    if twin.co_freevars != code.co_freevars:
        raise Untwinnable(f"the twin of {code.co_name} has other free variables", code.co_firstlineno)
    return twin, rewriter.renamed


def _rewritten(node, rewriter):
    if isinstance(node, ast.Lambda):
        body = rewriter.value(node.body)
        if rewriter.scopes[0].size:
            store = ast.NamedExpr(target=name("_dlc_s0", ast.Store()), value=rewriter.store_display(rewriter.scopes[0]))
            body = rewriter.at(rewriter.last(store, body), node.body)
    else:
        body = rewriter.block(node.body)
        if rewriter.scopes[0].size:
            documented = ast.get_docstring(node, clean=False) is not None
            store = rewriter.named("_dlc_s0", rewriter.store_display(rewriter.scopes[0]), node.body[0])
            body.insert(1 if documented else 0, store)
    for new in body if isinstance(body, list) else [body]:
        fill_places(new, node)
    twin = bare(node, body=body)
    hidden = [ast.copy_location(ast.arg(arg=parameter), node) for parameter in HIDDEN]
    twin.args.kwonlyargs += hidden
    twin.args.kw_defaults += [None] * len(hidden)
    return twin
