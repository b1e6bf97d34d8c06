"""Gradient rules: one function template per record with a vjp, and what the tape must save for it."""

import re

from cpp import HEADER, camel, cname
from records import LIST_KINDS, identifiers

# Reads sizes, strides and dtype only, so the tape keeps no values for it.
SHAPE_ONLY = r"\b(?:metaOf|sizesOf|dtypeOf)\((\w+)\)"


def analyse(op):
    """Fills op.extra['saved'] = (mask of parameters, mask of results, whether the in-place form must keep self)."""
    values, everything = set(), set()
    for v in op.vjps:
        everything |= set(identifiers(v.grad))
        values |= set(identifiers(re.sub(SHAPE_ONLY, "shape()", v.grad)))
    op.extra["used"] = everything
    params = sum(1 << i for i, p in enumerate(op.params) if p.is_tensor and p.name in values)
    results = sum(1 << i for i, r in enumerate(op.results) if r in values)
    op.extra["saved"] = (params, results, bool(op.inplace and op.params and op.params[0].name in values))


def _locals(op):
    used = op.extra["used"]
    lines = []
    if any(p.name in used for p in op.params) or op.kind == "elementwise":
        lines.append(f"  [[maybe_unused]] const auto in_ = {op.cls}Args<V>::unpack(a_);\n")
    wrapped = {w for v in op.vjps for w in v.wrt} if op.kind == "elementwise" else set()
    for p in op.params:
        if p.name in used or p.name in wrapped:
            lines.append(f"  [[maybe_unused]] const auto &{cname(p.name)} = in_.{cname(p.name)};\n")
    for i, r in enumerate(op.results):
        if r in used:
            lines.append(f"  [[maybe_unused]] const V &{r} = results_[{i}];\n")
        g = "g" if len(op.results) == 1 else f"g_{r}"
        if g in used:
            lines.append(f"  [[maybe_unused]] const V &{g} = grads_[{i}];\n")
    return "".join(lines)


def _guard(op, v):
    grads = [n for n in dict.fromkeys(identifiers(v.grad)) if n == "g" or n.startswith("g_")]
    return f" && isDefined({grads[0]})" if len(grads) == 1 else ""


def _one(op, v, source):
    line = f'#line {op.line} "{source}"\n'
    if len(v.wrt) == 1:
        p = op.param(v.wrt[0])
        i = op.index(p.name)
        if p.kind in LIST_KINDS:
            return (
                f"  if (auto needs = wantedRange(a_, wanted_, {i}); anyOf(needs){_guard(op, v)}) {{\n{line}"
                f"    auto r_ = {v.grad};\n    assignRange(a_, out_, {i}, r_);\n  }}\n"
            )
        value = v.grad
        if op.kind == "elementwise":
            target = f"*{cname(p.name)}" if p.kind in ("TOpt", "TNOpt") else cname(p.name)
            value = f"sumToLike({v.grad}, metaOf({target}))"
        return f"  if (wantedAt(a_, wanted_, {i}){_guard(op, v)})\n{line}    out_[flatIndex(a_, {i})] = {value};\n"
    needs = ", ".join(f"wantedAt(a_, wanted_, {op.index(w)})" for w in v.wrt)
    some = " || ".join(f"needs[{k}]" for k in range(len(v.wrt)))
    out = [
        f"  {{\n    const bool needs[] = {{{needs}}};\n    if (({some}){_guard(op, v)}) {{\n{line}      auto r_ = {v.grad};\n"
    ]
    for k, w in enumerate(v.wrt):
        p = op.param(w)
        value = f"r_[{k}]"
        if op.kind == "elementwise":
            value = f"sumToLike(r_[{k}], metaOf({'*' if p.kind in ('TOpt', 'TNOpt') else ''}{cname(w)}))"
        out.append(f"      if (needs[{k}])\n        out_[flatIndex(a_, {op.index(w)})] = {value};\n")
    out.append("    }\n  }\n")
    return "".join(out)


def rules(ops, family):
    out = [HEADER]
    for op in ops:
        if op.family != family or not op.vjps:
            continue
        source = f"dialects/ops/{family}.td"
        body = "".join(_one(op, v, source) for v in op.vjps)
        out.append(
            f"template <class V> void {camel(op.mnemonic)}Vjp(Span<const Arg<V>> a_, [[maybe_unused]] Span<const V> results_, "
            f"Span<const V> grads_, Span<const bool> wanted_, Span<V> out_) {{\n{_locals(op)}{body}}}\n"
        )
    return "".join(out)


def boxes(ops, family):
    """Instances for Tensor: what the op table points to."""
    out = [HEADER]
    for op in ops:
        if op.family != family:
            continue
        name = camel(op.mnemonic)
        if op.vjps:
            out.append(
                f"void {name}BoxedVjp(Span<const Arg<Tensor>> a, Span<const Tensor> r, Span<const Tensor> g, "
                f"Span<const bool> n, Span<Tensor> o) {{ {name}Vjp<Tensor>(a, r, g, n, o); }}\n"
            )
        if op.composite:
            out.append(
                f"void {name}BoxedRule(Span<const Arg<Tensor>> a, Span<Tensor> o) {{ "
                f"deliver(o, {name}Rule({op.cls}Args<Tensor>::unpack(a))); }}\n"
            )
    return "".join(out)


def vjp_cases(ops):
    """DLC_VJP(class, function) for every op with a gradient."""
    return HEADER + "".join(f"DLC_VJP({op.cls}, {camel(op.mnemonic)}Vjp)\n" for op in ops if op.vjps)


def rule_cases(ops):
    """DLC_RULE(class, function) for every composite."""
    return HEADER + "".join(f"DLC_RULE({op.cls}, {camel(op.mnemonic)}Rule)\n" for op in ops if op.composite)
