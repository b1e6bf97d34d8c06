// Which registers an instruction reads and writes.
#include "python/capture/program/Code.h"

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

template <class T> const T &dataOf(const Instr &i) { return static_cast<const T &>(*i.data); }

void dataUses(const Instr &i, std::vector<Use> &uses) {
  switch (i.op) {
  case Do::Aliases:
    for (Reg r : dataOf<AliasGuard>(i).tensors)
      uses.push_back({'o', r});
    break;
  case Do::Facts:
    for (const Fact &f : dataOf<FactGuard>(i).facts)
      symbolsOf(f.expr, uses);
    break;
  case Do::NumDim:
  case Do::MakeInt:
    symbolsOf(dataOf<DimValue>(i).dim.expr(), uses);
    break;
  case Do::View: {
    auto &view = dataOf<ViewOf>(i);
    symbolsOf(view.sizes, uses);
    symbolsOf(view.strides, uses);
    symbolsOf(view.offset.expr(), uses);
    break;
  }
  case Do::Segment:
    segmentUses(dataOf<SegmentCall>(i), uses);
    break;
  case Do::Eager:
    eagerUses(dataOf<EagerCall>(i), uses);
    break;
  case Do::RngTake:
    symbolsOf(dataOf<RngEffect>(i).blocks.expr(), uses);
    break;
  case Do::Tape: {
    std::vector<Reg> objs, tens;
    dataOf<TapeEffect>(i).reads(objs, tens);
    for (Reg r : objs)
      uses.push_back({'o', r});
    for (Reg r : tens)
      uses.push_back({'t', r});
    std::vector<Reg> nums;
    std::vector<Dim> dims;
    dataOf<TapeEffect>(i).readsNumbers(nums, dims);
    for (Reg r : nums)
      uses.push_back({'n', r});
    for (const Dim &d : dims)
      symbolsOf(d.expr(), uses);
    break;
  }
  default:
    break;
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
