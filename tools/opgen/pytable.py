"""The table of Python signatures, the stub file, the sample table, and the reference page."""

from collections import OrderedDict

from cpp import HEADER, schema


def functions(ops):
    """(module, name) -> records in overload order, of every record with a Python spelling."""
    groups = OrderedDict()
    for op in ops:
        if op.function or op.method or op.inplace:
            groups.setdefault((op.pyModule, op.pyName), []).append(op)
    for g in groups.values():
        g.sort(key=lambda o: o.overload)
    return groups


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _default(p):
    """(enumerator, i, f, s)"""
    d = p.default
    if d == "":
        return "Required", "0", "0", "nullptr"
    if d == "None":
        return "None", "0", "0", "nullptr"
    if p.kind in ("IntList", "SymInts"):
        return ("Ints", "0", "0", '""') if d == "()" else ("Ints", d, "0", "nullptr")
    if d in ("True", "False"):
        return "Bool", str(int(d == "True")), "0", "nullptr"
    if p.kind == "Str":
        return "Str", "0", "0", quote(d)
    if p.kind in ("Float", "FloatOpt") or "." in d or "e" in d:
        return "Float", "0", d, "nullptr"
    return "Int", d, "0", "nullptr"


def table(ops):
    out = [HEADER]
    entries = []
    for (module, name), group in functions(ops).items():
        stem = f"{module.replace('.', '_')}_{name}"
        overloads = []
        for op in group:
            ps = []
            for p in op.params:
                e, i, f, s = _default(p)
                fixed = p.fixed or (1 if p.kind in ("SymInts",) and op.varargs else 0)
                choices = quote("|".join(p.choices)) if p.choices else "nullptr"
                ps.append(f'{{"{p.name}", ParamKind::{p.kind}, PyDefault::{e}, {i}, {f}, {s}, {fixed}, {choices}}}')
            if ps:
                out.append(f"constexpr PyParam k{op.cls}PyParams[] = {{{', '.join(ps)}}};\n")
            kwonly = op.index(op.kwonly) if op.kwonly else len(op.params)
            overloads.append(
                f'{{"{op.mnemonic}", {f"k{op.cls}PyParams" if ps else "nullptr"}, {len(ps)}, nullptr, {kwonly}, '
                f"{str(bool(op.varargs)).lower()}, {quote(schema(op))}}}"
            )
        out.append(f"constexpr PyOverload kOverloads_{stem}[] = {{{', '.join(overloads)}}};\n")
        bits = [
            b
            for b, f in (("kFunction", "function"), ("kMethod", "method"), ("kInplace", "inplace"), ("kOut", "out"))
            if any(getattr(o, f) for o in group)
        ]
        operator = next((o.operator for o in group if o.operator), "")
        doc = "\n".join(f"{schema(o)}\n\n{o.summary}" for o in group)
        entries.append(
            f'{{"{name}", "{module}", {" | ".join(bits)}, "{operator}", kOverloads_{stem}, {len(group)}, {quote(doc)}}},\n'
        )
    out.append("constexpr PyFunction kPyFunctions[] = {\n" + "".join(entries) + "};\n")
    return "".join(out)


STUB_TYPE = {
    "T": "Tensor",
    "TMut": "Tensor",
    "TN": "Tensor | Number",
    "TOpt": "Tensor | None",
    "TOptMut": "Tensor | None",
    "TNOpt": "Tensor | Number | None",
    "TList": "Sequence[Tensor]",
    "TListMut": "Sequence[Tensor]",
    "TOptList": "Sequence[Tensor | None]",
    "Num": "Number",
    "NumOpt": "Number | None",
    "SymInt": "int",
    "SymIntOpt": "int | None",
    "SymInts": "Sequence[int]",
    "Rng": "Generator | None",
    "Int": "int",
    "IntOpt": "int | None",
    "IntList": "Sequence[int]",
    "IntListOpt": "int | Sequence[int] | None",
    "Bool": "bool",
    "Float": "float",
    "FloatOpt": "float | None",
    "Str": "str",
    "StrOpt": "str | None",
    "DTypeA": "dtype",
    "DTypeOpt": "dtype | None",
    "DeviceOpt": "str | None",
}


def _stub_param(p):
    t = STUB_TYPE[p.kind]
    if p.choices:
        t = "Literal[" + ", ".join(f'"{c}"' for c in p.choices) + "]" + (" | None" if p.kind == "StrOpt" else "")
    if p.kind in ("IntList", "SymInts") and p.fixed:
        t = "int | " + t
    d = f'"{p.default}"' if p.kind == "Str" and p.default else p.default
    return t, d


def _stub_def(op, name, method, indent, overloaded, out_param):
    params = list(op.params)
    pieces = []
    star = False
    if method and params:
        pieces.append("self")
        params = params[1:]
    if (
        op.varargs
        and params
        and params[0].kind in ("SymInts", "IntList")
        and not method
        or op.varargs
        and method
        and params
        and params[0].kind in ("SymInts", "IntList")
    ):
        p = params[0]
        pieces.append(f"*{p.name}: int | Sequence[int]")
        star = True
        params = params[1:]
    for p in params:
        if p.name == op.kwonly and not star:
            pieces.append("*")
            star = True
        t, d = _stub_param(p)
        public = "input" if p.name == "self" and not method else p.name
        public = {"from": "from_"}.get(public, public)
        pieces.append(f"{public}: {t}" + (f" = {d}" if d else ""))
    if out_param:
        pieces += ([] if star else ["*"]) + ["out: Tensor | None = None"]
    elif op.kind in ("creation", "random") and not method and any(p.name == "dtype" for p in op.params):
        pieces += ([] if star else ["*"]) + ["requires_grad: bool = False"]
    n = op.publicResults or len(op.results)
    ret = (
        "list[Tensor]"
        if op.list_result
        else "None"
        if n == 0
        else "Tensor"
        if n == 1
        else "tuple[" + ", ".join(["Tensor"] * n) + "]"
    )
    head = f"{indent}@overload\n" if overloaded else ""
    doc = f'{indent}    """{op.summary}"""\n'
    return f"{head}{indent}def {name}({', '.join(pieces)}) -> {ret}:\n{doc}{indent}    ...\n"


def stub(ops):
    groups = functions(ops)
    out = [
        '"""Signatures of all ops. Generated by tools/opgen from dialects/ops/*.td; edit those."""\n',
        "from typing import Literal, Sequence, overload\n\nfrom dlc import Generator, Tensor, dtype\n\nNumber = bool | int | float\n\n",
    ]
    modules = OrderedDict()
    for (module, name), group in groups.items():
        modules.setdefault(module, []).append((name, [o for o in group if o.function]))
    for module, entries in modules.items():
        indent = ""
        if module:
            out.append(f'\nclass {module.replace(".", "_")}:\n    """Functions of dlc.{module}."""\n\n')
            indent = "    "
        for name, group in entries:
            for op in group:
                text = _stub_def(op, name, False, indent, len(group) > 1, op.out)
                out.append((f"{indent}@staticmethod\n" if module else "") + text)
    out.append('\n\nclass TensorMethods:\n    """Methods of dlc.Tensor that are ops."""\n\n')
    for (_, name), group in groups.items():
        methods = [o for o in group if o.method and o.params and o.params[0].name == "self"]
        for op in methods:
            out.append(_stub_def(op, name, True, "    ", len(methods) > 1, False))
        for op in [o for o in group if o.inplace]:
            out.append(_stub_def(op, name + "_", True, "    ", len([o for o in group if o.inplace]) > 1, False))
    return "".join(out)


def samples(ops):
    """Python source of a table of sample calls."""
    rows = []
    for op in ops:
        for k, s in enumerate(op.samples):
            rows.append(
                dict(
                    op=op.mnemonic,
                    index=k,
                    name=op.pyName,
                    module=op.pyModule,
                    function=bool(op.function),
                    method=bool(op.method),
                    params=[p.name for p in op.params],
                    args=s.args,
                    ref=s.ref,
                    range=s.range,
                    rtol=s.rtol,
                    dtypes=op.dtypes,
                    kind=op.kind,
                    differentiable=bool(op.vjps or (op.composite and not op.ir and op.differentiable)),
                    inplace=bool(op.inplace),
                    promotion=op.promotion,
                    results=op.publicResults or len(op.results),
                    list_result=op.list_result,
                    ir=op.ir,
                )
            )
    text = "".join(f"    {row!r},\n" for row in rows)
    return f'"""Sample calls of every op. Generated by tools/opgen from dialects/ops/*.td; edit those."""\nSAMPLES = [\n{text}]\n'


def page(ops):
    out = [
        "# Ops\n\nEvery op of dlc, a section a family. Generated by `tools/opgen` from `dialects/ops/*.td`; edit those.\n\n"
        "`_` after the name is the in-place form of a method. A *rule* is recorded as the ops that it is made of.\n"
    ]
    family = None
    for op in ops:
        if not (op.function or op.method or op.inplace):
            continue
        if op.family != family:
            family = op.family
            out.append(f"\n## {family}\n\n")
        where = f"dlc.{op.pyModule}." if op.pyModule else "dlc." if op.function else "Tensor."
        forms = [f"`{where}{op.pyName}`"]
        if op.method and op.function:
            forms.append("method")
        if op.inplace:
            forms.append("in-place")
        if op.out:
            forms.append("out=")
        if not op.ir:
            forms.append("rule")
        types = " ".join(op.dtypes) if len(op.dtypes) < 10 else "all dtypes"
        out.append(f"- **{op.pyName}** ({', '.join(forms)}; {types})\n  `{schema(op)}`\n  {op.summary}\n")
    return "".join(out)


def schemas(ops):
    return "".join(schema(op) + "\n" for op in ops)
