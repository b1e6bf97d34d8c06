// An op of the `dlc` dialect as boxed arguments: the one place where operands and attributes are matched with the
// parameters of the op's record. Serves meta functions, rules, scalar code and call steps.
#pragma once
#include "dialects/dlc/Sizes.h"
#include "runtime/op/OpInfo.h"
#include "mlir/IR/Operation.h"

namespace dlc::ir {

/// The record of an op, or null if it is none of the dialect.
const OpInfo *infoOf(mlir::Operation *op);

/// Where an attribute of an op is looked up: the op itself, or the parts of one that is being built.
using AttrLookup = llvm::function_ref<mlir::Attribute(llvm::StringRef)>;

/// Operands of each parameter, in order; attribute parameters have none.
class OperandRanges {
public:
  OperandRanges(mlir::Operation *op, const OpInfo &info)
      : OperandRanges(op->getOperands(), [op](llvm::StringRef name) { return op->getAttr(name); }, info) {}
  /// Throws InternalError when the segments do not fit the operands.
  OperandRanges(mlir::ValueRange operands, AttrLookup attrs, const OpInfo &info);
  mlir::ValueRange operator[](size_t param) const {
    return operands_.slice(ranges_[param].first, ranges_[param].second);
  }
  /// The operand of a parameter by its name; null if absent.
  mlir::Value operator[](llvm::StringRef param) const;

private:
  mlir::ValueRange operands_;
  const OpInfo &info_;
  llvm::SmallVector<std::pair<unsigned, unsigned>> ranges_;
};

/// Whether a parameter is operands in the IR (else an attribute), and whether their number varies.
bool isOperandKind(ParamKind k);
bool isVariadicKind(ParamKind k);

/// How values become what is boxed.
template <class V> struct Boxing {
  llvm::function_ref<V(mlir::Value)> value; ///< of tensors, and of numbers in the place of tensors
  llvm::function_ref<Number(mlir::Value)> number;
  const Symbols &symbols;
};

namespace detail {
bool isDimKind(ParamKind k);
DType typeAttrDType(mlir::Attribute a);
Dim dimOrThrow(const Symbols &symbols, mlir::Value v, const OpInfo &info);
} // namespace detail

template <class V> class BoxedOp {
public:
  BoxedOp(mlir::Operation *op, const OpInfo &info, const Boxing<V> &boxing)
      : BoxedOp(op->getOperands(), [op](llvm::StringRef name) { return op->getAttr(name); }, info, boxing) {}
  BoxedOp(mlir::ValueRange operands, AttrLookup attrs, const OpInfo &info, const Boxing<V> &boxing) {
    OperandRanges ranges(operands, attrs, info);
    values_.reserve(operands.size());
    dims_.reserve(operands.size());
    for (size_t i = 0; i < info.params.size(); ++i)
      args_.push_back(box(attrs, info, info.params[i], ranges[i], boxing));
  }
  BoxedOp(const BoxedOp &) = delete;
  Span<const Arg<V>> args() const { return Span<const Arg<V>>(args_.data(), args_.size()); }

private:
  using A = Arg<V>;
  A box(AttrLookup attrs, const OpInfo &info, const ParamInfo &p, mlir::ValueRange operands, const Boxing<V> &boxing) {
    if (isTensorKind(p.kind)) {
      size_t first = values_.size();
      for (mlir::Value v : operands)
        values_.push_back(mlir::isa<mlir::NoneType>(v.getType()) ? V() : boxing.value(v));
      if (isTensorListKind(p.kind))
        return A::list(Span<const V>(values_.data() + first, values_.size() - first));
      return operands.empty() ? A() : A::of(values_[first]);
    }
    if (p.kind == ParamKind::Num || p.kind == ParamKind::NumOpt)
      return operands.empty() ? A() : A::number(boxing.number(operands[0]));
    if (p.kind == ParamKind::Rng)
      return operands.empty() ? A() : A::ofRng(nullptr);
    if (detail::isDimKind(p.kind)) {
      size_t first = dims_.size();
      for (mlir::Value v : operands)
        dims_.push_back(detail::dimOrThrow(boxing.symbols, v, info));
      if (p.kind == ParamKind::SymInts || (p.kind == ParamKind::SymIntsOpt && !operands.empty()))
        return A::ofDims(Span<const Dim>(dims_.data() + first, dims_.size() - first));
      return operands.empty() ? A() : A::ofDim(dims_[first]);
    }
    mlir::Attribute a = attrs(p.name);
    return a ? boxAttr(a) : A();
  }
  A boxAttr(mlir::Attribute a) {
    if (auto s = mlir::dyn_cast<mlir::StringAttr>(a))
      return A::ofStr(Str(s.getValue().data(), s.getValue().size()));
    if (auto b = mlir::dyn_cast<mlir::BoolAttr>(a))
      return A::ofBool(b.getValue());
    if (auto i = mlir::dyn_cast<mlir::IntegerAttr>(a))
      return A::ofInt(i.getInt());
    if (auto f = mlir::dyn_cast<mlir::FloatAttr>(a))
      return A::ofFloat(f.getValueAsDouble());
    if (auto d = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(a))
      return A::ofInts(Ints(d.asArrayRef().data(), d.asArrayRef().size()));
    return A::ofDType(detail::typeAttrDType(a));
  }
  std::vector<V> values_;
  std::vector<Dim> dims_;
  std::vector<A> args_;
};

/// The metadata of a tensor value (row-major), or of a number as a wrapped tensor.
TensorMeta metaOf(mlir::Value v, const Symbols &symbols);
/// The number that an i1, i64, f64 or index value is; a non-constant one is symbolic with the value as its reference.
Number numberOf(mlir::Value v);

} // namespace dlc::ir
