"""Expressions with hooks: every read, call, operator and truth test of a syntax tree becomes a call of a hook, placed
where the plain operation was, so that order, positions and messages stay. New nodes only: the tree given is shared.
"""

import ast
import sys

from .kept import SLICE, SUPER, Untwinnable
from .scopes import COMPREHENSIONS, Targets, mangled

BINARY = ("Add", "Sub", "Mult", "MatMult", "Div", "FloorDiv", "Mod", "Pow")
BINARY += ("LShift", "RShift", "BitOr", "BitXor", "BitAnd")
UNARY = ("UAdd", "USub", "Invert")
COMPARE = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn")
_CODES = {name: code for table in (BINARY, UNARY, COMPARE) for code, name in enumerate(table)}

# Builtins that look at the calling frame. vars() and dir() of an object don't.
_FRAME_READERS = {"locals", "vars", "dir", "eval", "exec", "globals", "breakpoint"}
_FRAME_MODULES = {"sys": {"_getframe"}, "inspect": {"currentframe", "stack", "trace", "getouterframes"}}


def name(identifier, context=None):
    return ast.Name(id=identifier, ctx=context or ast.Load())


def constant(value):
    return ast.Constant(value=value)


def is_literal(node):
    """A constant, or operators on constants that the compiler folds."""
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and is_literal(node.operand)
    if isinstance(node, ast.BinOp):
        return is_literal(node.left) and is_literal(node.right)
    return isinstance(node, ast.Constant)


class Scope:
    """Where expressions are evaluated: the function's own block, or a comprehension. Values needed twice are kept in
    numbered places of a list of that scope: an assignment expression may not stand in a comprehension's iterable,
    and in a comprehension it would bind in the function, which several running generators share."""

    def __init__(self, store, targets=frozenset()):
        self.store = store
        self.targets = targets
        self.size = 0


class Expressions:
    """Rewrites expressions. code: the plain code; bindings: what the function's block binds."""

    def __init__(self, code, bindings, class_name):
        self.code = code
        self.bindings = bindings
        self.class_name = class_name
        self.scopes = [Scope("_dlc_s0")]
        self.made = 0
        self.loops = set()
        self.renamed = {}
        self.owner = None

    # Pieces of new code.

    def at(self, new, old):
        """Nodes inside `new` that have no place yet get it from the node around them, at the end."""
        return ast.copy_location(new, old)

    def hook(self, hook, old, *arguments, keywords=()):
        return self.at(ast.Call(func=name("_dlc_" + hook), args=list(arguments), keywords=list(keywords)), old)

    def fresh(self, letter):
        self.made += 1
        return f"_dlc_{letter}{self.made}"

    def loop_id(self, node):
        """Positive and unique in the function; the same each time the function is rewritten."""
        number = node.lineno * 1000 + min(node.col_offset, 900) + 1
        while number in self.loops:
            number += 1
        self.loops.add(number)
        return number

    def place(self):
        scope = self.scopes[-1]
        scope.size += 1
        return scope.store, scope.size - 1

    def keep(self, place, value):
        """The value, which is kept in the place."""
        store, index = place
        setter = ast.Attribute(value=name(store), attr="__setitem__", ctx=ast.Load())
        call = ast.Call(func=setter, args=[constant(index), value], keywords=[])
        return ast.BoolOp(op=ast.Or(), values=[call, self.kept(place)])

    def kept(self, place):
        store, index = place
        return ast.Subscript(value=name(store), slice=constant(index), ctx=ast.Load())

    def forget(self, *places):
        return [self.keep(place, constant(None)) for place in places]

    def taken(self, place):
        """The kept value, which is kept no longer."""
        return self.first(self.kept(place), *self.forget(place))

    def first(self, *values):
        return self._element(values, 0)

    def last(self, *values):
        return self._element(values, len(values) - 1)

    def _element(self, values, index):
        values = ast.Tuple(elts=list(values), ctx=ast.Load())
        return ast.Subscript(value=values, slice=constant(index), ctx=ast.Load())

    def store_display(self, scope):
        return ast.List(elts=[constant(None)] * scope.size, ctx=ast.Load())

    # Names.

    def kind_of(self, identifier):
        """ "local", "free" or "global": how the function's code loads the name."""
        if any(identifier in scope.targets for scope in self.scopes[1:]):
            return "local"
        bindings = self.bindings
        if identifier in bindings.globals:
            return "global"
        if mangled(identifier, self.class_name) in self.code.co_freevars:
            return "free"
        return "local" if identifier in bindings.bound else "global"

    def refuse_frame_reader(self, node, called_with=None):
        if node.id in _FRAME_READERS and self.kind_of(node.id) == "global":
            if not (node.id in ("vars", "dir") and called_with):
                raise Untwinnable(f"{node.id} looks at the frame that calls it", node.lineno)

    def load(self, node, called_with=None):
        kind = self.kind_of(node.id)
        if kind == "local" or node.id == "__debug__":
            return node
        self.refuse_frame_reader(node, called_with)
        hook = "gl" if kind == "global" else "cell"
        return self.hook(hook, node, name("_dlc_fn"), constant(mangled(node.id, self.class_name)), node)

    # Values.

    def value(self, node):
        """The expression with hooks; it has the value the plain one has."""
        if is_literal(node):
            return node
        visit = getattr(self, "visit_" + type(node).__name__, None)
        if visit is None:
            raise Untwinnable(f"{type(node).__name__} expressions are not understood", node.lineno)
        return visit(node)

    def optional(self, node):
        return None if node is None else self.value(node)

    def values(self, nodes):
        return [self.value(node) for node in nodes]

    def visit_Name(self, node):
        return self.load(node)

    def attribute_place(self, node):
        """The compiler gives an attribute after a line break the line of its name."""
        if node.lineno == node.end_lineno:
            return node
        place = ast.copy_location(ast.Pass(), node)
        place.lineno = node.end_lineno
        place.col_offset = max(node.end_col_offset - len(node.attr), 0)
        return place

    def attribute(self, node):
        """The object and the attribute's name, as arguments of a hook."""
        module = node.value.id if isinstance(node.value, ast.Name) else None
        if node.attr == "_getframe" or node.attr in _FRAME_MODULES.get(module, ()):
            raise Untwinnable(f"{node.attr} looks at the frame that calls it", node.lineno)
        return self.value(node.value), constant(mangled(node.attr, self.class_name))

    def visit_Attribute(self, node):
        return self.hook("attr", self.attribute_place(node), *self.attribute(node))

    def visit_Subscript(self, node):
        return self.hook("item", node, self.value(node.value), self.value(node.slice))

    def visit_Slice(self, node):
        bounds = [constant(None) if b is None else self.value(b) for b in (node.lower, node.upper, node.step)]
        return self.at(ast.Call(func=constant(SLICE), args=bounds, keywords=[]), node)

    def visit_Starred(self, node):
        iterator = self.hook("it", node.value, self.value(node.value), constant(-self.loop_id(node)))
        return self.at(ast.Starred(value=iterator, ctx=node.ctx), node)

    def visit_Tuple(self, node):
        return self.at(type(node)(elts=self.values(node.elts), ctx=node.ctx), node)

    visit_List = visit_Tuple

    def key(self, node):
        return node if is_literal(node) else self.hook("key", node, self.value(node))

    def visit_Set(self, node):
        elements = [self.value(e) if isinstance(e, ast.Starred) else self.key(e) for e in node.elts]
        return self.at(ast.Set(elts=elements), node)

    def mapping(self, node):
        return self.hook("map", node, self.value(node))

    def visit_Dict(self, node):
        keys, values = [], []
        for key, value in zip(node.keys, node.values):
            keys.append(None if key is None else self.key(key))
            values.append(self.mapping(value) if key is None else self.value(value))
        return self.at(ast.Dict(keys=keys, values=values), node)

    # Calls.

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "super" and not node.args and not node.keywords and self.kind_of("super") == "global":
                return self.bare_super(node)
            callee = self.load(function, called_with=node.args)
        else:
            callee = self.value(function)
        keywords = [
            ast.keyword(arg=k.arg, value=self.mapping(k.value) if k.arg is None else self.value(k.value))
            for k in node.keywords
        ]
        return self.hook("call", self.call_place(node), callee, *self.values(node.args), keywords=keywords)

    def call_place(self, node):
        """A method call after a line break starts at the method's name, if the compiler makes it a method call."""
        starred = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
        if not isinstance(node.func, ast.Attribute) or starred:
            return node
        start = self.attribute_place(node.func)
        place = ast.copy_location(ast.Pass(), node)
        if start is not node.func:
            place.lineno, place.col_offset = start.lineno, start.col_offset
        return place

    def bare_super(self, node):
        """super(), with what it finds by looking at the frame; some other `super` is called as it stands."""
        first = self.code.co_varnames[0] if self.code.co_argcount else None
        if first is None or "__class__" not in self.code.co_freevars or len(self.scopes) > 1:
            raise Untwinnable("super() without arguments outside a method's own block", node.lineno)
        if first in self.bindings.deleted:
            raise Untwinnable("super() after its object was deleted", node.lineno)
        place = self.place()
        found = self.keep(place, self.load(ast.copy_location(name("super"), node.func)))
        cell = self.load(ast.copy_location(name("__class__"), node))
        ours = self.hook("call", node, self.taken(place), cell, self.at(name(first), node))
        theirs = self.hook("call", node, self.taken(place))
        test = ast.Compare(left=found, ops=[ast.Is()], comparators=[constant(SUPER)])
        return self.at(ast.IfExp(test=test, body=ours, orelse=theirs), node)

    # Operators.

    def visit_BinOp(self, node):
        op = constant(_CODES[type(node.op).__name__])
        return self.hook("bin", node, op, self.value(node.left), self.value(node.right))

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            operand = self.hook("truth", node, self.value(node.operand))
            return self.at(ast.UnaryOp(op=ast.Not(), operand=operand), node)
        return self.hook("un", node, constant(_CODES[type(node.op).__name__]), self.value(node.operand))

    def compare(self, node, op, left, right):
        return self.hook("cmp", node, constant(_CODES[type(op).__name__]), left, right)

    def links(self, node):
        """The comparisons of a chain, each to be evaluated if those before it hold, and the places they use."""
        links, places = [], []
        left = self.value(node.left)
        for index, (op, right) in enumerate(zip(node.ops, node.comparators)):
            value = following = self.value(right)
            if index + 1 < len(node.ops) and not is_literal(right):
                place = self.place()
                places.append(place)
                value, following = self.keep(place, value), self.kept(place)
            links.append(self.compare(node, op, left, value))
            left = following
        return links, places

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            return self.compare(node, node.ops[0], self.value(node.left), self.value(node.comparators[0]))
        links, places = self.links(node)
        result = self.place()
        tests = [self.hook("truth", node, self.keep(result, link)) for link in links[:-1]]
        holds = tests[0] if len(tests) == 1 else ast.BoolOp(op=ast.And(), values=tests)
        whole = ast.IfExp(test=holds, body=links[-1], orelse=self.kept(result))
        return self.at(self.first(whole, *self.forget(result, *places)), node)

    def visit_BoolOp(self, node):
        place = self.place()
        tests = [self.decides(value, place, node) for value in node.values[:-1]]
        decided = tests[0] if len(tests) == 1 else ast.BoolOp(op=node.op, values=tests)
        rest = self.last(*self.forget(place), self.value(node.values[-1]))
        kept = self.taken(place)
        body, orelse = (rest, kept) if isinstance(node.op, ast.And) else (kept, rest)
        return self.at(ast.IfExp(test=decided, body=body, orelse=orelse), node)

    def decides(self, node, place, owner):
        """An operand of `owner` as a condition, with its value kept; of nested operators each operand's truth is
        asked once."""
        if isinstance(node, ast.BoolOp):
            values = [self.decides(value, place, node) for value in node.values[:-1]]
            return ast.BoolOp(op=node.op, values=[*values, self.decides(node.values[-1], place, owner)])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.keep(place, self.value(node))
        return self.hook("truth", owner, self.keep(place, self.value(node)))

    def condition(self, node, owner):
        """The expression as the condition of `owner`."""
        before, self.owner = self.owner, owner
        result = self.test(node)
        self.owner = before
        return result

    def test(self, node):
        """A plain bool; each operand's truth is asked once."""
        if isinstance(node, ast.BoolOp):
            return self.at(ast.BoolOp(op=node.op, values=[self.test(value) for value in node.values]), node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.at(ast.UnaryOp(op=ast.Not(), operand=self.test(node.operand)), node)
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.IfExp):
            parts = {field: self.test(getattr(node, field)) for field in ("test", "body", "orelse")}
            return self.at(ast.IfExp(**parts), node)
        if isinstance(node, ast.Compare):
            links, places = self.links(node)
            # Before 3.12 a jump has the place of the statement, or of the comparison compiled last.
            self.owner = node
            tests = [self.hook("truth", node, link) for link in links]
            holds = tests[0] if len(tests) == 1 else ast.BoolOp(op=ast.And(), values=tests)
            return self.at(self.first(holds, *self.forget(*places)) if places else holds, node)
        return self.hook("truth", node if sys.version_info >= (3, 12) else self.owner, self.value(node))

    def visit_IfExp(self, node):
        test = self.condition(node.test, node)
        return self.at(ast.IfExp(test=test, body=self.value(node.body), orelse=self.value(node.orelse)), node)

    def visit_NamedExpr(self, node):
        value = self.stored(node.target, self.value(node.value))
        return self.at(ast.NamedExpr(target=node.target, value=value), node)

    def stored(self, target, value):
        """What is stored in the name `target` when it is to get `value`."""
        kind = self.kind_of(target.id)
        if kind == "local":
            return value
        hook = "glw" if kind == "global" else "cellw"
        return self.hook(hook, target, name("_dlc_fn"), constant(mangled(target.id, self.class_name)), value)

    # Strings.

    def visit_JoinedStr(self, node):
        parts = [self.value(part) for part in node.values]
        if all(isinstance(part, ast.Constant) for part in parts):
            return node
        return parts[0] if len(parts) == 1 else self.hook("join", node, *parts)

    def visit_FormattedValue(self, node):
        spec = constant("") if node.format_spec is None else self.value(node.format_spec)
        return self.hook("fmt", node, self.value(node.value), constant(node.conversion), spec)

    # Functions and generators.

    def visit_Lambda(self, node):
        lambda_ = ast.Lambda(args=self.signature(node), body=node.body)
        return self.hook("func", node, self.at(lambda_, node))

    def signature(self, node):
        """The signature of a nested function: its default values are evaluated here."""
        fields = {field: getattr(node.args, field) for field in node.args._fields}
        fields["defaults"] = self.values(node.args.defaults)
        fields["kw_defaults"] = [self.optional(default) for default in node.args.kw_defaults]
        return ast.arguments(**fields)

    def visit_Yield(self, node):
        return self.at(ast.Yield(value=self.optional(node.value)), node)

    def visit_YieldFrom(self, node):
        return self.at(ast.YieldFrom(value=self.hook("it", node.value, self.value(node.value), constant(0))), node)

    def comprehension(self, node):
        clauses = []
        outermost = self.iterated(node.generators[0])
        self.scopes.append(scope := Scope(self.fresh("s"), Targets(node).names))
        before, self.owner = self.owner, node
        for index, generator in enumerate(node.generators):
            iterator = self.iterated(generator) if index else outermost
            new = self.clauses(generator, iterator)
            new[-1].ifs = [self.test(condition) for condition in generator.ifs]
            clauses.append(new)
        if isinstance(node, ast.DictComp):
            fields = {"key": self.key(node.key), "value": self.value(node.value)}
        else:
            fields = {"elt": self.key(node.elt) if isinstance(node, ast.SetComp) else self.value(node.elt)}
        self.scopes.pop()
        self.owner = before
        if scope.size:
            self.insert_store(clauses[0], scope)
        fields["generators"] = [clause for new in clauses for clause in new]
        return self.at(type(node)(**fields), node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def insert_store(self, clauses, scope):
        """The scope's list is new for each step of the outermost loop."""
        ifs, clauses[-1].ifs = clauses[-1].ifs, []
        clauses.append(self.let(name(scope.store, ast.Store()), self.store_display(scope), clauses[0].target))
        clauses[-1].ifs = ifs

    def let(self, target, value, place):
        display = self.at(ast.List(elts=[value], ctx=ast.Load()), place)
        return ast.comprehension(target=self.at(target, place), iter=display, ifs=[], is_async=0)

    def iterated(self, generator):
        if generator.is_async:
            raise Untwinnable("asynchronous comprehensions are not understood", generator.iter.lineno)
        return self.hook("it", generator.iter, self.value(generator.iter), constant(self.loop_id(generator.iter)))

    def clauses(self, generator, iterator):
        """The clause, followed by one for each tuple that its targets take apart."""
        target, pending = self.simple_target(generator.target)
        result = [ast.comprehension(target=target, iter=iterator, ifs=[], is_async=0)]
        while pending:
            source, pattern = pending.pop(0)
            names, star = [], -1
            for index, element in enumerate(pattern.elts):
                if isinstance(element, ast.Starred):
                    star, element = index, element.value
                simple, more = self.simple_target(element)
                names.append(simple)
                pending += more
            taken = self.hook("unp", pattern, name(source), constant(len(names)), constant(star))
            result.append(self.let(ast.Tuple(elts=names, ctx=ast.Store()), taken, pattern))
        return result

    def simple_target(self, target):
        if isinstance(target, ast.Name):
            return target, []
        if isinstance(target, (ast.Tuple, ast.List)):
            taken = self.fresh("t")
            return self.at(name(taken, ast.Store()), target), [(taken, target)]
        raise Untwinnable("a comprehension that stores to an attribute or item", target.lineno)


assert all(hasattr(Expressions, "visit_" + kind.__name__) for kind in COMPREHENSIONS)
