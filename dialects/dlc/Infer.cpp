// Types by meta functions, and building ops from their records.
#include "dialects/dlc/DlcDialect.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace dlc::ir {

Type elementType(DType t, MLIRContext *context) {
  Builder b(context);
  switch (t) {
  case DType::Bool:
    return b.getI1Type();
  case DType::U8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case DType::F16:
    return b.getF16Type();
  case DType::BF16:
    return b.getBF16Type();
  case DType::F32:
    return b.getF32Type();
  case DType::F64:
    return b.getF64Type();
  default:
    return b.getIntegerType(static_cast<unsigned>(itemSize(t)) * 8);
  }
}

/// The function whose symbols the operands' types speak of; null outside of one.
static func::FuncOp enclosingFunction(ValueRange operands) {
  for (Value v : operands)
    if (Region *region = v.getParentRegion()) {
      if (auto func = dyn_cast<func::FuncOp>(region->getParentOp()))
        return func;
      return region->getParentOfType<func::FuncOp>();
    }
  return {};
}

/// The result types that the meta function gives; throws what it throws.
static void inferOrThrow(const OpInfo &info, MLIRContext *context, ValueRange operands, AttrLookup attrs,
                         SmallVectorImpl<Type> &types) {
  func::FuncOp func = enclosingFunction(operands);
  Symbols symbols = func ? Symbols(func) : Symbols();
  auto meta = [&](Value v) { return metaOf(v, symbols); };
  Boxing<TensorMeta> boxing{meta, numberOf, symbols}; // refers to `meta`
  BoxedOp<TensorMeta> boxed(operands, attrs, info, boxing);
  MetaResult r;
  info.meta(boxed.args(), r);
  unsigned numSymbols = static_cast<unsigned>(symbols.count());
  for (const TensorMeta &m : r.outs)
    types.push_back(tensorType(elementType(m.dtype, context), m.sizes, numSymbols));
  for (size_t i = 0; i < info.params.size(); ++i)
    if (isMutatedKind(info.params[i].kind))
      for (const TensorMeta &m : boxed.args()[i].values())
        types.push_back(tensorType(elementType(m.dtype, context), m.sizes, numSymbols));
}

LogicalResult inferTypes(StringRef name, MLIRContext *context, std::optional<Location> loc, ValueRange operands,
                         AttrLookup attrs, SmallVectorImpl<Type> &types) {
  StringRef mnemonic = name;
  mnemonic.consume_front("dlc.");
  const OpInfo *info = findOp(Str(mnemonic.data(), mnemonic.size()));
  if (!info)
    return emitOptionalError(loc, name, " is not in the op table");
  try { // MLIR is built without exceptions: none may leave
    inferOrThrow(*info, context, operands, attrs, types);
  } catch (const Error &e) {
    return emitOptionalError(loc, name, ": ", e.what());
  }
  return success();
}

bool areCompatibleTypes(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<RankedTensorType>(x), t = dyn_cast<RankedTensorType>(y);
    if (!s || !t) {
      if (x != y)
        return false;
      continue;
    }
    if (s.getElementType() != t.getElementType() || s.getRank() != t.getRank())
      return false;
    for (auto [m, n] : llvm::zip(s.getShape(), t.getShape()))
      if (m != n && !ShapedType::isDynamic(m) && !ShapedType::isDynamic(n))
        return false;
  }
  return true;
}

Operation *createOp(OpBuilder &b, Location loc, const OpInfo &info, const OpParts &parts, ArrayRef<Type> types) {
  OperationState state(loc, std::string("dlc.") + info.name);
  SmallVector<int32_t> segments, resultSegments(info.results.size(), 1);
  unsigned variadic = 0, variadicResults = 0;
  for (size_t i = 0; i < info.params.size(); ++i) {
    ParamKind kind = info.params[i].kind;
    if (!isOperandKind(kind))
      continue;
    state.addOperands(parts.operands[i]);
    segments.push_back(static_cast<int32_t>(parts.operands[i].size()));
    variadic += isVariadicKind(kind);
    if (isMutatedKind(kind)) {
      resultSegments.push_back(static_cast<int32_t>(parts.operands[i].size()));
      variadicResults += isVariadicKind(kind);
    }
  }
  state.addAttributes(parts.attributes);
  if (variadic > 1)
    state.addAttribute("operandSegmentSizes", b.getDenseI32ArrayAttr(segments));
  if (variadicResults > 1)
    state.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr(resultSegments));
  if (types.empty()) {
    SmallVector<Type> inferred;
    inferOrThrow(
        info, b.getContext(), state.operands, [&](StringRef name) { return state.attributes.get(name); }, inferred);
    state.addTypes(inferred);
  } else {
    state.addTypes(types);
  }
  return b.create(state);
}

} // namespace dlc::ir
