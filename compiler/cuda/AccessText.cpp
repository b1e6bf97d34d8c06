// Prints reads and writes: affine indices, bounds, conversions between memory and scalars.
#include "compiler/cuda/KernelText.h"
#include "compiler/lower/PlanStorage.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

static constexpr int64_t kIndexOutOfRange = 2; // KernelFault of compiler/lower

static SmallVector<unsigned> dimNumbers(FuncOp func, ArrayRef<Attribute> names) {
  SmallVector<unsigned> dims;
  for (Attribute name : names)
    dims.push_back(func.getDimIndex(cast<StringAttr>(name).getValue()));
  return dims;
}

//===--- Indices ---===//

static bool mayBeNegative(AffineExpr expr) {
  bool negative = false;
  expr.walk([&](AffineExpr inner) {
    auto constant = dyn_cast<AffineConstantExpr>(inner);
    negative |= isa<AffineSymbolExpr>(inner) || (constant && constant.getValue() < 0);
  });
  return negative;
}

KernelText::Term KernelText::affine(AffineExpr expr, ArrayRef<unsigned> dims, ArrayRef<Term> syms) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {scalar::TextBuilder::intLiteral(indexKind_, constant.getValue()), indexKind_, 0};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dimTerm(dims[dim.getPosition()]);
  if (auto sym = dyn_cast<AffineSymbolExpr>(expr))
    return syms[sym.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Term x = affine(binary.getLHS(), dims, syms), y = affine(binary.getRHS(), dims, syms);
  unsigned level = std::max(x.level, y.level);
  auto infix = [&](const char *op) { return Term{"(" + x.text + " " + op + " " + y.text + ")", indexKind_, level}; };
  auto helper = [&](const char *name) {
    shared_.helpers.insert(CudaHelper::FloorIndex);
    std::string type = indexType();
    return Term{std::string(name) + "<" + type + ">(" + x.text + ", " + y.text + ")", indexKind_, level};
  };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return infix("+");
  case AffineExprKind::Mul:
    return infix("*");
  case AffineExprKind::FloorDiv:
    return mayBeNegative(binary.getLHS()) ? helper("dlc_floor_div") : infix("/");
  case AffineExprKind::Mod:
    return mayBeNegative(binary.getLHS()) ? helper("dlc_floor_mod") : infix("%");
  default: { // ceildiv: -floordiv(-x, y)
    x.text = "(-" + x.text + ")";
    Term quotient = helper("dlc_floor_div");
    quotient.text = "(-" + quotient.text + ")";
    return quotient;
  }
  }
}

SmallVector<KernelText::Term> KernelText::indices(AffineMap map, ArrayRef<unsigned> dims, ValueRange syms) {
  SmallVector<Term> symbols, list;
  for (Value sym : syms) {
    Term term = eval(sym);
    if (term.kind != indexKind_)
      term.text = std::string("(") + indexType() + ")" + term.text;
    symbols.push_back(term);
  }
  for (AffineExpr result : map.getResults())
    list.push_back(affine(result, dims, symbols));
  return list;
}

std::string KernelText::applyBound(Bound bound, ArrayRef<int64_t> positions, ValueRange sizes, SmallVector<Term> &list,
                                   unsigned level) {
  std::string inside;
  for (auto [position, size] : llvm::zip(positions, sizes)) {
    std::string index = define(level, indexType(), list[position].text);
    std::string limit = eval(size).text;
    if (bound == Bound::clamp) {
      std::string low = index + " < 0 ? 0 : " + index;
      list[position].text = define(level, indexType(), index + " >= " + limit + " ? " + limit + " - 1 : " + low);
      continue;
    }
    if (bound == Bound::wrap)
      index = define(level, indexType(), index + " < 0 ? " + index + " + " + limit + " : " + index);
    list[position].text = index;
    inside += (inside.empty() ? "" : " && ") + index + " >= 0 && " + index + " < " + limit;
  }
  if (inside.empty())
    return "";
  std::string ok = define(level, "bool", inside);
  if (bound != Bound::pad) {
    shared_.helpers.insert(CudaHelper::Raise);
    line(level, "dlc_raise(err, !" + ok + ", " + std::to_string(kIndexOutOfRange) + ");");
  }
  return ok;
}

std::string KernelText::element(Value buffer, ArrayRef<Term> list) {
  auto arg = cast<BlockArgument>(buffer);
  SmallVector<int64_t> strides = getStrides(cast<MemRefType>(buffer.getType()));
  std::string offset;
  for (unsigned i = 0; i < list.size(); ++i) {
    std::string term;
    if (strides[i] == 0 || list[i].text == "0" || list[i].text == "0ll")
      continue;
    if (strides[i] == 1)
      term = list[i].text;
    else if (ShapedType::isDynamic(strides[i]))
      term = list[i].text + " * " + argName(arg.getArgNumber()) + "_s" + std::to_string(i);
    else
      term = list[i].text + " * " + scalar::TextBuilder::intLiteral(indexKind_, strides[i]);
    offset += (offset.empty() ? "" : " + ") + term;
  }
  return argName(arg.getArgNumber()) + "[" + (offset.empty() ? "0" : offset) + "]";
}

//===--- Memory and scalars ---===//

std::string KernelText::loaded(Type storedType, Type as, const std::string &text) {
  if (storedType.isF16()) {
    shared_.helpers.insert(CudaHelper::Half);
    return "dlc_from_f16(" + text + ")";
  }
  if (storedType.isBF16()) {
    shared_.helpers.insert(CudaHelper::BFloat);
    return "dlc_from_bf16(" + text + ")";
  }
  return as.isInteger(1) ? text + " != 0" : text;
}

std::string KernelText::stored(Type storedType, const Term &value) {
  if (storedType.isF16()) {
    shared_.helpers.insert(CudaHelper::Half);
    return "dlc_to_f16(" + value.text + ")";
  }
  if (storedType.isBF16()) {
    shared_.helpers.insert(CudaHelper::BFloat);
    return "dlc_to_bf16(" + value.text + ")";
  }
  return value.kind == Kind::Bool ? "(signed char)" + value.text : value.text;
}

KernelText::Term KernelText::evalRead(ReadOp read) {
  SmallVector<unsigned> dims = dimNumbers(func_, dlc::ir::kernel::getOver(read->getParentOp()).getValue());
  SmallVector<Term> list = indices(read.getMap(), dims, read.getSyms());
  unsigned level = 0;
  for (const Term &term : list)
    level = std::max(level, term.level);
  Kind kind = kindOf(read.getResult().getType());
  std::string ok;
  if (read.getBound())
    ok = applyBound(*read.getBound(), *read.getBoundDims(), read.getBoundSizes(), list, level);
  std::string text = element(read.getBuffer(), list);
  std::string key = text + ok + scalar::shortName(kind); // a byte may be read as Bool and as i8
  for (unsigned outer = level + 1; outer-- > 0;) {
    auto found = scopes_[outer].loads.find(key);
    if (found != scopes_[outer].loads.end())
      return {found->second, kind, outer};
  }
  if (llvm::is_contained(written_, read.getBuffer()))
    error(read) << "the buffer is read after it was overwritten";
  Type stored = cast<MemRefType>(read.getBuffer().getType()).getElementType();
  std::string value = loaded(stored, read.getResult().getType(), text);
  if (!ok.empty()) {
    Term pad = read.getPad() ? eval(read.getPad()) : Term{scalar::TextBuilder::literal(kind, 0), kind, 0};
    if (pad.level > level)
      level = pad.level;
    value = ok + " ? " + value + " : " + pad.text;
  }
  std::string name = define(level, scalar::cppName(kind), value);
  scopes_[level].loads[key] = name;
  return {name, kind, level};
}

//===--- Values kept in an output between loops ---===//

std::string KernelText::stashElement(const Stash &stash) {
  WriteOp out = stash.out;
  ValType type = out.getValue().getType();
  SmallVector<Attribute> names(type.getDims().begin(), type.getDims().end());
  return element(out.getBuffer(), indices(out.getMap(), dimNumbers(func_, names), {}));
}

void KernelText::storeStash(const Stash &stash, const Term &value) {
  stashDims_[stash.stage] = nestDims_;
  WriteOp out = stash.out;
  if (out.getValue() == stash.stage)
    return; // its own write, in this loop
  Type type = cast<MemRefType>(out.getBuffer().getType()).getElementType();
  if (guarded_)
    line("if (active)");
  line((guarded_ ? "  " : "") + stashElement(stash) + " = " + stored(type, value) + ";");
}

KernelText::Term KernelText::loadStash(const Stash &stash) {
  // A lane finds what it stored itself; if the lanes share other dims now, they wait for each other before the loop.
  if (team_ != Team::Thread && stashDims_.lookup(stash.stage) != nestDims_)
    line(innermost() - 1, "__syncthreads();");
  WriteOp out = stash.out;
  Type type = cast<MemRefType>(out.getBuffer().getType()).getElementType();
  Type scalar = cast<ValType>(stash.stage.getType()).getElementType();
  Kind kind = kindOf(scalar);
  return {define(innermost(), scalar::cppName(kind), loaded(type, scalar, stashElement(stash))), kind, innermost()};
}

// Whether some buffer that the kernel reads may lie where `write` stores.
bool KernelText::maySeeOther(WriteOp write) {
  auto isRead = [](Value buffer) {
    return llvm::any_of(buffer.getUsers(), [](Operation *user) { return isa<ReadOp>(user); });
  };
  return isRead(write.getBuffer()) || llvm::any_of(func_.getBlock().getArguments().drop_back(), [&](BlockArgument arg) {
           return isa<MemRefType>(arg.getType()) && isRead(arg) && mayShare(plan_, arg, write);
         });
}

//===--- Writes ---===//

// `x = combine(x, value)` for a write that accumulates.
static const char *combineName(Combine combine) {
  static constexpr const char *kOps[] = {"add", "mul", "min", "max", "min", "max", "and", "or"};
  return static_cast<unsigned>(combine) < 8 ? kOps[static_cast<int>(combine)] : nullptr;
}

void KernelText::printWrite(WriteOp write) {
  ValType type = write.getValue().getType();
  SmallVector<Attribute> names(type.getDims().begin(), type.getDims().end());
  SmallVector<unsigned> dims = dimNumbers(func_, names);
  Term value = eval(write.getValue());
  SmallVector<Term> list = indices(write.getMap(), dims, write.getSyms());
  std::string condition;
  if (write.getBound())
    condition = applyBound(*write.getBound(), *write.getBoundDims(), write.getBoundSizes(), list, innermost());
  auto also = [&](const std::string &text) { condition += (condition.empty() ? "" : " && ") + text; };
  // Outside the loops that the lanes share, all of them are at the same point.
  bool alone = team_ == Team::Thread;
  for (unsigned sink = 0; sink < plan_.sinks.size(); ++sink)
    alone |= plan_.sinks[sink].op == write && inLeaf_.count(sink);
  if (!alone)
    also("lane == 0");
  if (guarded_)
    also("active");
  Type storedType = cast<MemRefType>(write.getBuffer().getType()).getElementType();
  std::string place = element(write.getBuffer(), list);
  if (write.getAccumulate()) {
    const char *name = combineName(*write.getAccumulate());
    if (!name)
      error(write) << "argmin and argmax can't accumulate";
    else {
      shared_.helpers.insert(CudaHelper::Combine);
      std::string cast = std::string("(") + scalar::cppName(value.kind) + ")";
      value.text = std::string("dlc_") + name + "::join(" + cast + loaded(storedType, type.getElementType(), place) +
                   ", " + cast + value.text + ")";
    }
  }
  if (!alone && maySeeOther(write))
    line("__syncthreads();"); // other lanes may still have to read the old value
  if (!condition.empty())
    line("if (" + condition + ")");
  line((condition.empty() ? "" : "  ") + place + " = " + stored(storedType, value) + ";");
  if (!llvm::is_contained(written_, write.getBuffer()))
    written_.push_back(write.getBuffer());
}

} // namespace dlc::compiler
