"""Scalar functions of elementwise ops: one template over a builder per variant, eager kernels, and the table by which
lowerings find them."""

import itertools

from cpp import HEADER, camel, cname, dtype_mask

FLOATS = {"f16", "bf16", "f32", "f64"}


def _conditions(dag, found):
    fn, args = dag
    if fn in ("given_", "case_"):
        name = args[0][1]
        options = ["present", "absent"] if fn == "given_" else [args[i][0] for i in range(1, len(args), 2)]
        found.setdefault((fn, name), options)
    for value, _ in args:
        if isinstance(value, tuple):
            _conditions(value, found)


def _resolve(dag, choice):
    """The dag with given_ and case_ decided."""
    fn, args = dag

    def pick(arg):
        value, name = arg
        return _resolve(value, choice) if isinstance(value, tuple) else ("$", name) if name else ("literal", value)

    if fn == "given_":
        return pick(args[1] if choice[(fn, args[0][1])] == "present" else args[2])
    if fn == "case_":
        options = {args[i][0]: args[i + 1] for i in range(1, len(args), 2)}
        return pick(options[choice[(fn, args[0][1])]])
    return (fn, [pick(a) for a in args])


def _operands(node, found):
    if node[0] == "$":
        if node[1] not in found:
            found.append(node[1])
    elif node[0] != "literal":
        for a in node[1]:
            _operands(a, found)
    return found


def _text(node, like):
    if node[0] == "$":
        return cname(node[1])
    fn, args = node
    if fn == "const_":
        return f"scalar::constant(b, {cname(like)}, {args[0][1]})"
    return f"scalar::{fn}(b, {', '.join(_text(a, like) for a in args)})"


class Variant:
    def __init__(self, op, choice):
        self.op = op
        self.choice = choice
        self.body = _resolve(op.scalar, choice)
        used = _operands(self.body, [])
        self.operands = [p for p in op.params if p.name in used]
        parts = []
        for (_, name), value in choice.items():
            parts += [name] if value == "present" else [] if value == "absent" else [value]
        self.suffix = "".join("_" + p for p in parts)
        self.name = f"{op.cls}{self.suffix}Fn"
        arith = any(fn == "case_" and v in op.arithCases for (fn, _), v in choice.items())
        self.promotion = "Arith" if arith else op.promotion
        types = set(op.dtypes)
        self.types = sorted(types & FLOATS if self.promotion == "ToFloat" else types)
        self.wide = -1  # see number_wide
        self.bools = sum(1 << i for i, p in enumerate(self.operands) if p.name in op.boolOperands)

    def condition(self):
        """C++ over the argument struct `args` of the kernel."""
        tests = []
        for (fn, name), value in self.choice.items():
            field = f"args.{cname(name)}"
            if fn == "given_":
                tests.append(field if value == "present" else f"!{field}")
            elif self.op.param(name).kind == "StrOpt":
                tests.append(f"!{field}" if value == "None" else f'{field} && *{field} == "{value}"')
            else:
                tests.append(f'{field} == "{value}"')
        return " && ".join(tests)

    def boxed_condition(self):
        """C++ over boxed arguments `a`."""
        tests = []
        for (fn, name), value in self.choice.items():
            arg = f"a[{self.op.index(name)}]"
            if fn == "given_" or value == "None":
                tests.append(f"{'!' if value == 'present' else ''}{arg}.isNone()")
            else:
                tests.append(f'!{arg}.isNone() && {arg}.str() == "{value}"')
        return " && ".join(tests)

    def struct(self):
        like = next(p.name for p in self.operands if p.name not in self.op.boolOperands)
        ps, ts = [], ["class B"]
        for p in self.operands:
            if p.name in self.op.boolOperands:
                ts.append("class C")
            ps.append(f"{'C' if p.name in self.op.boolOperands else 'V'} {cname(p.name)}")
        ts.append("class V")
        return (
            f"struct {self.name} {{\n  static constexpr int kArity = {len(self.operands)};\n"
            f"  static constexpr uint32_t kTypes = {dtype_mask(self.types):#x};\n  static constexpr uint32_t kBoolOperands = {self.bools};\n"
            f"  static constexpr int kWide = {self.wide};\n"
            f"  template <{', '.join(ts)}> static auto run(B &b, {', '.join(ps)}) {{ return {_text(self.body, like)}; }}\n}};\n"
        )


def variants(op):
    found = {}
    _conditions(op.scalar, found)
    keys = list(found)
    return [Variant(op, dict(zip(keys, values))) for values in itertools.product(*(found[k] for k in keys))]


def number_wide(ops):
    """The functions that compute in floats only, numbered: kernels/wide has loops of them in the widest vectors."""
    found = [
        v
        for op in ops
        if op.has_scalar
        for v in op.extra["variants"]
        if v.operands and v.body[0] != "$" and not v.bools and "f32" in v.types and set(v.types) <= FLOATS
    ]
    for number, v in enumerate(found):
        v.wide = number
    return found


def wide(ops):
    return HEADER + "".join(f"DLC_WIDE({v.name})\n" for v in number_wide(ops))


def functions(ops):
    number_wide(ops)
    out = [HEADER]
    for op in ops:
        if op.has_scalar:
            for v in op.extra["variants"]:
                if v.operands and v.body[0] != "$":
                    out.append(v.struct())
    return "".join(out)


def kernels(ops):
    """Kernels of the elementwise ops, over kernels/elementwise/Elementwise.h, in four shards that compile in parallel."""
    out = [HEADER]
    for number, op in enumerate(o for o in ops if o.has_scalar and o.hasKernel):
        body = []
        for v in op.extra["variants"]:
            if v.body[0] == "$":  # clamp(x) without bounds: refused by the meta function
                continue
            lines = [f'Operands in("{op.mnemonic}", Promotion::{v.promotion});']
            for p in v.operands:
                field = f"args.{cname(p.name)}"
                if p.name in op.boolOperands:
                    lines.append(f"in.boolTensor({field});")
                elif p.is_tensor:
                    lines.append(f"in.tensor({'*' if p.kind in ('TOpt', 'TNOpt') else ''}{field});")
                else:
                    lines.append(f"in.number({field});")
            lines.append(f"run<{v.name}>(in, outs);")
            test = v.condition()
            text = " ".join(lines)
            body.append(f"  if ({test}) {{ {text} return; }}\n" if test else f"  {text}\n")
        out.append(
            f"#if DLC_SHARD == {number % 4}\n"
            f"void {camel(op.mnemonic)}Kernel(const {op.cls}Args<Tensor> &args, Span<Tensor> outs) {{\n{''.join(body)}}}\n#endif\n"
        )
    return "".join(out)


def table(ops):
    """DLC_SCALAR(op class, function, variant number, arity, bool mask, condition on boxed `a`, parameter indices...)."""
    out = [HEADER]
    for op in ops:
        if not op.has_scalar:
            continue
        for k, v in enumerate(op.extra["variants"]):
            if v.body[0] == "$":
                continue
            indices = ", ".join(str(op.index(p.name)) for p in v.operands)
            out.append(
                f"DLC_SCALAR({op.cls}, {v.name}, {k}, {len(v.operands)}, {v.bools}, Promotion::{v.promotion}, "
                f"({v.boxed_condition() or 'true'}), {indices})\n"
            )
    return "".join(out)
