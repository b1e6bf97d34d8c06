"""From a function to its syntax tree, with a proof: the tree, compiled in a copy of its surroundings that holds nothing
but the scopes around it, gives the code the function has. Assumes nothing about the file; whatever doesn't prove is refused.
"""

import __future__

import ast
import bisect
import linecache
import sys
import types
import warnings

from .kept import Untwinnable
from .scopes import COMPREHENSIONS, FUNCTIONS, Bindings, first_line, imported, parameters

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


class quiet_compiler:
    """The user saw the warnings of this source when it was first compiled. catch_warnings would also forget which
    warnings were shown once, so the filter goes in and out without telling."""

    _filter = ("ignore", None, Warning, None, 0)

    def __enter__(self):
        warnings.filters.insert(0, self._filter)

    def __exit__(self, *unused):
        warnings.filters.remove(self._filter)


class SourceFile:
    """A parsed file: top-level statements by line, and the names its import statements bind."""

    def __init__(self, filename, lines, rewrite=None):
        self.filename = filename
        self.lines = lines
        source = "".join(lines)
        try:
            with quiet_compiler():
                self.tree = ast.parse(source, filename)
                if rewrite is not None:
                    rewrite(self.tree, source.encode(), filename)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Untwinnable(f"{filename} can't be parsed: {error}") from None
        self.starts = [first_line(statement) for statement in self.tree.body]
        names = sorted(set(_imported_names(self.tree.body)))
        # The compiler calls methods of imported names in its own way, so the names must look imported.
        self.imports = [_at_start(ast.Import(names=[_at_start(ast.alias(name=n)) for n in names]))] if names else []

    def statement_at(self, line):
        place = bisect.bisect_right(self.starts, line) - 1
        return self.tree.body[place] if place >= 0 else None


def _at_start(node):
    node.lineno = node.end_lineno = 1
    node.col_offset = node.end_col_offset = 0
    return node


def _imported_names(statements):
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from (imported(alias) for alias in statement.names if alias.name != "*")
        elif not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imported_names(getattr(statement, field, ()))


_files = {}
_KEPT_FILES = 32


def source_file(code, module_globals):
    """The parsed file of a code object; read and parsed once as long as linecache gives the same lines."""
    filename = code.co_filename
    if filename.startswith("<frozen "):
        filename = module_globals.get("__file__") or filename
    lines = linecache.getlines(filename, module_globals)
    if not lines:
        raise Untwinnable(f"no source of {filename}")
    rewrite = _assertion_rewriter(code)
    key = filename, rewrite is not None
    known = _files.pop(key, None)
    if known is None or (known.lines is not lines and known.lines != lines):
        known = SourceFile(filename, lines, rewrite)
    _files[key] = known
    while len(_files) > _KEPT_FILES:
        del _files[next(iter(_files))]
    return known


def _assertion_rewriter(code):
    """pytest compiles test files with other assert statements; then the tree it compiled is the function's source."""
    if not any(name.startswith(("@pytest_", "@py_")) for name in code.co_names + code.co_varnames):
        return None
    return getattr(sys.modules.get("_pytest.assertion.rewrite"), "rewrite_asserts", None)


class Located:
    """A function's node and what surrounds it. class_name: for name mangling; flags: the future statements."""

    def __init__(self, file, node, path, code):
        self.file = file
        self.filename = code.co_filename
        self.node = node
        self.path = path
        self.flags = code.co_flags & _FUTURES
        self.class_name = None
        for parent, field, _ in path:
            if isinstance(parent, ast.ClassDef) and field == "body":
                self.class_name = parent.name

    def compiled(self, node):
        """The code of `node` in the function's place, in a module that holds only the scopes around it."""
        statement = fill_places(_surrounded(node, self.path), node, stop=node)
        module = ast.Module(body=[*self.file.imports, statement], type_ignores=[])
        with quiet_compiler():
            whole = compile(module, self.filename, "exec", flags=self.flags, dont_inherit=True)
        # Scopes around it can start at the same line and have the same name: lambdas do.
        name, line = getattr(node, "name", "<lambda>"), first_line(node)
        around = [p for p, field, _ in self.path if field == "body" and getattr(p, "name", "<lambda>") == name]
        around = [p for p in around if isinstance(p, (*FUNCTIONS, ast.Lambda)) and first_line(p) == line]
        same = [code for code in code_objects(whole) if code.co_name == name and code.co_firstlineno == line]
        return same[len(around)]


def locate(code, module_globals):
    """The node whose plain compilation is `code`. Raises Untwinnable."""
    file = source_file(code, module_globals)
    statement = file.statement_at(code.co_firstlineno)
    candidates = list(_candidates(statement, code, [])) if statement is not None else []
    if not candidates:
        raise Untwinnable(f"{file.filename} does not define {code.co_name} there", code.co_firstlineno)
    proven = []
    for node, path in candidates:
        located = Located(file, node, path, code)
        try:
            found = located.compiled(bare(node))
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Untwinnable(f"{code.co_name} can't be compiled by itself: {error}", code.co_firstlineno) from None
        if same_code(found, code):
            if _positions(found) == _positions(code):
                return located
            proven.append(located)
    if not proven:
        why = "the file was changed or the code was generated"
        raise Untwinnable(f"the source of {code.co_name} is not the code that runs: {why}", code.co_firstlineno)
    return proven[0]


def _positions(code):
    return list(code.co_positions()) if hasattr(code, "co_positions") else list(code.co_lines())


def _candidates(node, code, path):
    """Functions below `node` that start at the code's line and have its name, each with its path from `node`."""
    line, name = code.co_firstlineno, code.co_name
    wanted = ast.Lambda if name == "<lambda>" else FUNCTIONS
    if isinstance(node, wanted) and first_line(node) == line and getattr(node, "name", name) == name:
        yield node, list(path)
    if getattr(node, "end_lineno", line) < line or (hasattr(node, "lineno") and first_line(node) > line):
        return
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                path.append((node, field, child))
                yield from _candidates(child, code, path)
                path.pop()


def bare(node, **changes):
    """A copy of the function without what is evaluated outside it: decorators, defaults, annotations."""
    arguments = node.args
    plain = ast.arguments(
        posonlyargs=[_bare_argument(a) for a in arguments.posonlyargs],
        args=[_bare_argument(a) for a in arguments.args],
        vararg=arguments.vararg and _bare_argument(arguments.vararg),
        kwonlyargs=[_bare_argument(a) for a in arguments.kwonlyargs],
        kw_defaults=[None] * len(arguments.kwonlyargs),
        kwarg=arguments.kwarg and _bare_argument(arguments.kwarg),
        defaults=[],
    )
    fields = {"args": plain, "body": node.body}
    if not isinstance(node, ast.Lambda):
        # A decorator stays, for the line at which the code starts.
        marks = [ast.copy_location(ast.Constant(value=None), d) for d in node.decorator_list[:1]]
        fields.update(name=node.name, decorator_list=marks, returns=None)
        if hasattr(node, "type_params"):
            fields["type_params"] = node.type_params
    fields.update(changes)
    return ast.copy_location(type(node)(**fields), node)


def _bare_argument(argument):
    return ast.copy_location(ast.arg(arg=argument.arg), argument)


def fill_places(root, place, stop=None):
    """Gives nodes without a place that of the node around them; bodies of nested functions and classes have theirs."""
    pending = [(root, place)]
    while pending:
        node, place = pending.pop()
        if node is stop:
            continue
        if "lineno" in node._attributes:
            place = node if hasattr(node, "lineno") else ast.copy_location(node, place)
        nested = stop is None and isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef))
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                if not (nested and field == "body"):
                    pending.append((value, place))
            elif type(value) is list and not (nested and field == "body"):
                pending += [(child, place) for child in value if isinstance(child, ast.AST)]
    return root


def _surrounded(node, path):
    """The statement that holds `node` inside the scopes of its path; whatever makes no scope around it is left out."""
    for parent, field, child in reversed(path):
        if isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
            if field == "body":
                node = _scope(parent, _statement(node))
            elif getattr(parent, "type_params", None):
                raise Untwinnable(f"{parent.name} has type parameters and a function in its signature", parent.lineno)
        elif isinstance(parent, ast.Lambda) and field == "body":
            names = sorted(Bindings(parent).bound - {a.arg for a in parameters(parent.args)})
            bound = [ast.NamedExpr(target=_stored(n), value=ast.Constant(value=None)) for n in names]
            node = bare(parent, body=ast.Tuple(elts=[*bound, node], ctx=ast.Load()) if bound else node)
        elif isinstance(parent, COMPREHENSIONS) and not _evaluated_outside(parent, child, path):
            node = _comprehension(parent, node)
    return _statement(node)


def _stored(identifier):
    return ast.Name(id=identifier, ctx=ast.Store())


def _statement(node):
    return ast.copy_location(ast.Expr(value=node), node) if isinstance(node, ast.expr) else node


def _evaluated_outside(parent, child, path):
    """The iterable of a comprehension's first clause belongs to the scope around it."""
    clause = parent.generators[0]
    return child is clause and any(p is clause and field == "iter" for p, field, _ in path)


def _comprehension(parent, node):
    """A comprehension of the same kind that binds the same names."""
    nothing = ast.Tuple(elts=[], ctx=ast.Load())
    targets = ast.Tuple(elts=[clause.target for clause in parent.generators], ctx=ast.Store())
    fields = {"generators": [ast.comprehension(target=targets, iter=nothing, ifs=[], is_async=0)]}
    if isinstance(parent, ast.DictComp):
        fields.update(key=ast.Constant(value=None), value=node)
    else:
        fields.update(elt=node)
    return ast.copy_location(type(parent)(**fields), parent)


def _scope(parent, statement):
    """The function or class `parent` with its names bound and no body but `statement`."""
    names = Bindings(parent)
    body = []
    if names.globals:
        body.append(ast.Global(names=sorted(names.globals)))
    if names.nonlocals:
        body.append(ast.Nonlocal(names=sorted(names.nonlocals)))
    if isinstance(parent, FUNCTIONS):
        local = names.bound - names.globals - names.nonlocals - {a.arg for a in parameters(parent.args)}
        body += [ast.Assign(targets=[_stored(n)], value=ast.Constant(value=None)) for n in sorted(local)]
    body = [ast.copy_location(line, statement) for line in body]
    if isinstance(parent, FUNCTIONS):
        return bare(parent, body=[*body, statement])
    fields = {"name": parent.name, "bases": [], "keywords": [], "body": [*body, statement], "decorator_list": []}
    if hasattr(parent, "type_params"):
        fields["type_params"] = parent.type_params
    return ast.copy_location(ast.ClassDef(**fields), parent)


def code_objects(code):
    """All code objects inside `code`."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from code_objects(constant)


_COMPARED = (
    "co_name co_qualname co_firstlineno co_flags co_argcount co_posonlyargcount co_kwonlyargcount co_names "
    "co_varnames co_freevars co_cellvars co_exceptiontable co_code"
).split()


def same_code(one, other):
    """Whether two code objects do the same at the same lines, constants included."""
    for attribute in _COMPARED:
        if getattr(one, attribute, None) != getattr(other, attribute, None):
            return False
    if not _same_constants(one.co_consts, other.co_consts):
        return False
    return list(one.co_lines()) == list(other.co_lines())


def _same_constants(one, other):
    return len(one) == len(other) and all(map(_same_constant, one, other))


def _same_constant(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return same_code(one, other)
    if isinstance(one, tuple):
        return _same_constants(one, other)
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    if isinstance(one, frozenset):
        return one == other and sorted(map(repr, one)) == sorted(map(repr, other))
    return one == other
