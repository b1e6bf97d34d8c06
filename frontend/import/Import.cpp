// One IR op a node, by the parameters of its record; nothing here knows an op by name.
#include "frontend/import/Import.h"
#include "compiler/graph/Sizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace dlc {
namespace {

class Importer {
public:
  Importer(MLIRContext *context, const Graph &graph, const BackendOptions &options)
      : g_(graph), options_(options), b_(context), values_(graph.values.size()) {}

  OwningOpRef<ModuleOp> run() {
    Location loc = b_.getUnknownLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    b_.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs, results;
    for (int32_t v : g_.inputs)
      inputs.push_back(typeOf(v));
    for (const Number &n : g_.numbers)
      inputs.push_back(numberType(n));
    inputs.append(g_.symbols.size(), b_.getIndexType());
    for (const GraphOutput &o : g_.outputs)
      results.push_back(typeOf(o.value));
    func_ = b_.create<func::FuncOp>(loc, "main", b_.getFunctionType(inputs, results));
    func_->setAttr("dlc.symbols", b_.getDenseI64ArrayAttr(g_.symbols));
    Block *entry = func_.addEntryBlock();
    b_.setInsertionPointToEnd(entry);
    bindArguments(entry);
    for (const GraphNode &n : g_.nodes)
      importNode(n);
    finish();
    verifyModule(*module);
    return module;
  }

private:
  Type elementType(DType t) {
    switch (t) {
    case DType::Bool:
      return b_.getI1Type();
    case DType::U8:
      return b_.getIntegerType(8, /*isSigned=*/false);
    case DType::F16:
      return b_.getF16Type();
    case DType::BF16:
      return b_.getBF16Type();
    case DType::F32:
      return b_.getF32Type();
    case DType::F64:
      return b_.getF64Type();
    default:
      return b_.getIntegerType(static_cast<unsigned>(itemSize(t)) * 8);
    }
  }
  Type typeOf(int32_t value) {
    const TensorMeta &m = g_.values[value];
    return compiler::tensorType(elementType(m.dtype), m.sizes, numSymbols());
  }
  unsigned numSymbols() const { return static_cast<unsigned>(g_.symbols.size()); }
  Type numberType(const Number &n) {
    return n.category() == Category::Float ? Type(b_.getF64Type()) : n.category() == Category::Int ? Type(b_.getI64Type()) : Type(b_.getI1Type());
  }
  AffineMapAttr stridesAttr(const Dims &strides) {
    return AffineMapAttr::get(compiler::toAffine(strides, numSymbols(), b_.getContext()));
  }

  void bindArguments(Block *entry) {
    size_t at = 0;
    for (size_t i = 0; i < g_.inputs.size(); ++i, ++at) {
      const TensorMeta &m = g_.values[g_.inputs[i]];
      values_[g_.inputs[i]] = entry->getArgument(at);
      if (!compiler::same(m.strides, contiguousStrides(m.sizes)))
        func_.setArgAttr(at, "dlc.strides", stridesAttr(m.strides));
      if (i < options_.sharedInput.size() && options_.sharedInput[i])
        func_.setArgAttr(at, "dlc.shared", b_.getUnitAttr());
    }
    for (size_t i = 0; i < g_.numbers.size(); ++i)
      numbers_.push_back(entry->getArgument(at++));
    for (size_t k = 0; k < g_.symbols.size(); ++k, ++at) {
      func_.setArgAttr(at, "dlc.symbol", b_.getI64IntegerAttr(static_cast<int64_t>(k)));
      symbols_.push_back(entry->getArgument(at));
    }
  }

  Location locOf(const GraphNode &n) {
    std::string text = locText(n.loc);
    size_t colon = text.rfind(':');
    if (colon == std::string::npos)
      return b_.getUnknownLoc();
    return FileLineColLoc::get(b_.getStringAttr(text.substr(0, colon)), static_cast<unsigned>(std::atoi(text.c_str() + colon + 1)), 0);
  }

  Value number(const Number &n) {
    if (n.ref())
      return numbers_[numberIndex(n)];
    if (n.category() == Category::Float)
      return b_.create<arith::ConstantOp>(loc_, b_.getF64FloatAttr(n.toDouble()));
    if (n.category() == Category::Int)
      return b_.create<arith::ConstantOp>(loc_, b_.getI64IntegerAttr(n.toInt()));
    return b_.create<arith::ConstantOp>(loc_, b_.getBoolAttr(n.toBool()));
  }

  /// A size or index as an SSA value; equal ones share it.
  Value dim(const Dim &d) {
    Value &slot = dims_[{d.isConst() ? d.value() : 0, d.expr()}];
    if (!slot && d.isConst()) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(&func_.getBody().front());
      slot = b_.create<arith::ConstantIndexOp>(b_.getUnknownLoc(), d.value());
    } else if (!slot) {
      slot = b_.create<affine::AffineApplyOp>(loc_, AffineMap::get(0, numSymbols(), compiler::toAffine(d, b_.getContext())), symbols_);
    }
    return slot;
  }

  Attribute attribute(const Arg<GVal> &a) {
    switch (a.tag) {
    case ArgTag::Int:
      return b_.getI64IntegerAttr(a.i);
    case ArgTag::IntList:
      return b_.getDenseI64ArrayAttr(ArrayRef<int64_t>(a.ints, a.size));
    case ArgTag::Bool:
      return b_.getBoolAttr(a.b());
    case ArgTag::Float:
      return b_.getF64FloatAttr(a.f);
    case ArgTag::Str:
      return b_.getStringAttr(StringRef(a.chars, a.size));
    case ArgTag::DType:
      return TypeAttr::get(elementType(a.dtype));
    default:
      return {};
    }
  }

  /// The operands of one argument; false if it is an attribute.
  bool operands(const Arg<GVal> &a, ParamKind kind, SmallVectorImpl<Value> &out) {
    switch (kind) {
    case ParamKind::Rng:
      if (a.tag == ArgTag::Rng) {
        out.push_back(numbers_[numberIndex(a.num)]);
        out.push_back(numbers_[a.dim.value()]);
      }
      return true;
    case ParamKind::SymInt:
    case ParamKind::SymIntOpt:
    case ParamKind::SymInts:
    case ParamKind::SymIntsOpt:
      if (a.tag == ArgTag::Dim)
        out.push_back(dim(a.dim));
      else if (a.tag == ArgTag::DimList)
        for (const Dim &d : a.dimList())
          out.push_back(dim(d));
      return true;
    default:
      break;
    }
    if (!isTensorKind(kind) && kind != ParamKind::Num && kind != ParamKind::NumOpt)
      return false;
    if (a.tag == ArgTag::Num)
      out.push_back(number(a.num));
    for (const GVal &v : a.values())
      out.push_back(v.id >= 0 ? values_[v.id] : hole());
    return true;
  }

  /// The operand of type `none` that marks an absent entry of a list.
  Value hole() {
    if (!hole_) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(&func_.getBody().front());
      OperationState state(b_.getUnknownLoc(), "dlc.none", {}, {b_.getNoneType()});
      hole_ = b_.create(state)->getResult(0);
    }
    return hole_;
  }

  static bool isMulti(ParamKind k) {
    switch (k) {
    case ParamKind::T:
    case ParamKind::TMut:
    case ParamKind::TN:
    case ParamKind::Num:
    case ParamKind::SymInt:
      return false;
    default:
      return true;
    }
  }

  void importNode(const GraphNode &n) {
    loc_ = locOf(n);
    OperationState state(loc_, std::string("dlc.") + n.op->name);
    SmallVector<int32_t> segments, resultSegments(n.op->results.size(), 1);
    unsigned multi = 0, multiResults = 0;
    Span<const Arg<GVal>> args = n.args.args();
    for (size_t i = 0; i < args.size(); ++i) {
      ParamKind kind = n.op->params[i].kind;
      SmallVector<Value> ops;
      if (operands(args[i], kind, ops)) {
        state.addOperands(ops);
        segments.push_back(static_cast<int32_t>(ops.size()));
        multi += isMulti(kind);
        if (isMutatedKind(kind)) {
          resultSegments.push_back(static_cast<int32_t>(ops.size()));
          multiResults += isMulti(kind);
        }
      } else if (Attribute a = attribute(args[i])) {
        state.addAttribute(n.op->params[i].name, a);
      }
    }
    if (multi > 1)
      state.addAttribute("operandSegmentSizes", b_.getDenseI32ArrayAttr(segments));
    if (multiResults > 1)
      state.addAttribute("resultSegmentSizes", b_.getDenseI32ArrayAttr(resultSegments));
    for (int32_t v : n.results)
      state.addTypes(typeOf(v));
    Operation *op = b_.create(state);
    for (size_t i = 0; i < n.results.size(); ++i)
      values_[n.results[i]] = op->getResult(i);
  }

  void finish() {
    SmallVector<Value> results;
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const GraphOutput &o = g_.outputs[i];
      results.push_back(values_[o.value]);
      if (!compiler::same(o.strides, contiguousStrides(g_.values[o.value].sizes)))
        func_.setResultAttr(i, "dlc.strides", stridesAttr(o.strides));
      if (o.writeBack >= 0)
        func_.setResultAttr(i, "dlc.write_back", b_.getI64IntegerAttr(o.writeBack));
    }
    b_.create<func::ReturnOp>(b_.getUnknownLoc(), results);
  }

  void verifyModule(ModuleOp module) {
    std::string message;
    ScopedDiagnosticHandler handler(b_.getContext(), [&](Diagnostic &d) {
      if (message.empty())
        message = d.str();
      return success();
    });
    if (failed(verify(module)))
      fail(ErrorKind::Internal, "a recorded graph does not verify: ", message, "\nreport it with the program");
  }

  const Graph &g_;
  const BackendOptions &options_;
  OpBuilder b_;
  func::FuncOp func_;
  Location loc_ = b_.getUnknownLoc();
  std::vector<Value> values_;
  SmallVector<Value> numbers_, symbols_;
  std::map<std::pair<int64_t, const DimExpr *>, Value> dims_;
  Value hole_;
};

} // namespace

OwningOpRef<ModuleOp> importGraph(MLIRContext *context, const Graph &graph, const BackendOptions &options) {
  return Importer(context, graph, options).run();
}

} // namespace dlc
