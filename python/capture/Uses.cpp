// Which registers an instruction reads and writes.
#include "python/capture/Code.h"

namespace dlc::py::replay {
namespace {

void symbolsOf(const DimExpr *e, std::vector<Use> &uses) {
  if (!e)
    return;
  for (const DimTerm &t : e->terms)
    for (const DimAtom *a : t.factors) {
      if (a->kind == DimAtom::Kind::Symbol) {
        uses.push_back({'s', static_cast<Reg>(a->symbol)});
      } else {
        symbolsOf(a->lhs.expr, uses);
        symbolsOf(a->rhs.expr, uses);
      }
    }
}
template <class C> void symbolsOf(const C &dims, std::vector<Use> &uses) {
  for (const Dim &d : dims)
    symbolsOf(d.expr(), uses);
}

void numberUses(const std::vector<NumberOperand> &numbers, std::vector<Use> &uses) {
  for (const NumberOperand &n : numbers) {
    if (n.num != kNoReg)
      uses.push_back({'n', n.num});
    else if (n.source.kind == trace::NumberSource::Kind::Session)
      symbolsOf(n.dim.expr(), uses);
    else if (n.source.kind == trace::NumberSource::Kind::Size)
      symbolsOf(n.source.size.expr(), uses);
    else if (n.source.kind == trace::NumberSource::Kind::Offset)
      symbolsOf(n.source.blocks.expr(), uses);
  }
}

void segmentUses(const SegmentCall &c, std::vector<Use> &uses) {
  for (Reg r : c.inputs)
    uses.push_back({'t', r});
  numberUses(c.numbers, uses);
  symbolsOf(c.symbols, uses);
}

void eagerUses(const EagerCall &c, std::vector<Use> &uses) {
  for (const GVal &v : c.args.values())
    if (v.id >= 0)
      uses.push_back({'t', v.id});
  for (const Arg<GVal> &a : c.args.args()) {
    if (a.tag == ArgTag::Dim)
      symbolsOf(a.dim.expr(), uses);
    else if (a.tag == ArgTag::DimList)
      symbolsOf(a.dimList(), uses);
  }
  numberUses(c.numbers, uses);
  if (c.form == CallForm::Out)
    for (Reg r : c.outs)
      uses.push_back({'t', r});
}

void dataUses(const Instr &i, std::vector<Use> &uses) {
  if (!i.data)
    return;
  if (auto *alias = dynamic_cast<const AliasGuard *>(i.data.get())) {
    for (Reg r : alias->tensors)
      uses.push_back({'o', r});
  } else if (auto *facts = dynamic_cast<const FactGuard *>(i.data.get())) {
    for (const Fact &f : facts->facts)
      symbolsOf(f.expr, uses);
  } else if (auto *dim = dynamic_cast<const DimValue *>(i.data.get())) {
    symbolsOf(dim->dim.expr(), uses);
  } else if (auto *view = dynamic_cast<const ViewOf *>(i.data.get())) {
    symbolsOf(view->sizes, uses);
    symbolsOf(view->strides, uses);
    symbolsOf(view->offset.expr(), uses);
  } else if (auto *segment = dynamic_cast<const SegmentCall *>(i.data.get())) {
    segmentUses(*segment, uses);
  } else if (auto *eager = dynamic_cast<const EagerCall *>(i.data.get())) {
    eagerUses(*eager, uses);
  } else if (auto *rng = dynamic_cast<const RngEffect *>(i.data.get())) {
    symbolsOf(rng->blocks.expr(), uses);
  } else if (auto *effect = dynamic_cast<const TapeEffect *>(i.data.get())) {
    std::vector<Reg> objs, tens;
    effect->reads(objs, tens);
    for (Reg r : objs)
      uses.push_back({'o', r});
    for (Reg r : tens)
      uses.push_back({'t', r});
  }
}

char operandKind(Do op) {
  switch (op) {
  case Do::View:
  case Do::ReadBool:
  case Do::ReadInt:
  case Do::ReadNum:
  case Do::SizeOf:
  case Do::MakeTensor:
    return 't';
  case Do::NumTest:
  case Do::NumIs:
  case Do::NumOp:
  case Do::MakeNumber:
    return 'n';
  default:
    return 'o';
  }
}

} // namespace

void usesOf(const Instr &i, std::vector<Use> &uses) {
  char kind = operandKind(i.op);
  if (i.a != kNoReg)
    uses.push_back({kind, i.a});
  if (i.b != kNoReg)
    uses.push_back({kind, i.b});
  for (Reg r : i.regs)
    if (r != kNoReg)
      uses.push_back({'o', r});
  dataUses(i, uses);
}

char writtenKind(Do op) {
  switch (op) {
  case Do::TensorOf:
  case Do::View:
    return 't';
  case Do::SymInt:
  case Do::SymLength:
  case Do::SymSize:
  case Do::SymStride:
  case Do::ReadBool:
  case Do::ReadInt:
  case Do::SizeOf:
    return 's';
  case Do::NumFloat:
  case Do::NumDim:
  case Do::NumOp:
  case Do::ReadNum:
    return 'n';
  default:
    return 'o';
  }
}

} // namespace dlc::py::replay
