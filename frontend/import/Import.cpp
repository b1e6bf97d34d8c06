// One IR op a node, by the parameters of its record; nothing here knows an op by name.
#include "frontend/import/Import.h"
#include "dialects/dlc/Rules.h"
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
  Type typeOf(int32_t value) {
    const TensorMeta &m = g_.values[value];
    return ir::tensorType(ir::elementType(m.dtype, b_.getContext()), m.sizes, numSymbols());
  }
  unsigned numSymbols() const { return static_cast<unsigned>(g_.symbols.size()); }
  Type numberType(const Number &n) {
    return n.category() == Category::Float ? Type(b_.getF64Type())
           : n.category() == Category::Int ? Type(b_.getI64Type())
                                           : Type(b_.getI1Type());
  }
  AffineMapAttr stridesAttr(const Dims &strides) {
    return AffineMapAttr::get(ir::toAffine(strides, numSymbols(), b_.getContext()));
  }

  void bindArguments(Block *entry) {
    size_t at = 0;
    for (size_t i = 0; i < g_.inputs.size(); ++i, ++at) {
      const TensorMeta &m = g_.values[g_.inputs[i]];
      values_[g_.inputs[i]] = entry->getArgument(at);
      if (!ir::same(m.strides, contiguousStrides(m.sizes)))
        func_.setArgAttr(at, "dlc.strides", stridesAttr(m.strides));
      if (i < options_.sharedInput.size() && options_.sharedInput[i])
        func_.setArgAttr(at, "dlc.shared", b_.getUnitAttr());
      if (i < options_.stateInput.size() && options_.stateInput[i])
        func_.setArgAttr(at, "dlc.state", b_.getUnitAttr());
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
    return FileLineColLoc::get(b_.getStringAttr(text.substr(0, colon)),
                               static_cast<unsigned>(std::atoi(text.c_str() + colon + 1)), 0);
  }

  Value number(const Number &n) { return n.ref() ? numbers_[numberIndex(n)] : ir::materialize(b_, loc_, n); }

  /// A size or index as an SSA value; equal ones share it.
  Value dim(const Dim &d) {
    Value &slot = dims_[{d.isConst() ? d.value() : 0, d.expr()}];
    if (!slot && d.isConst()) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(&func_.getBody().front());
      slot = b_.create<arith::ConstantIndexOp>(b_.getUnknownLoc(), d.value());
    } else if (!slot) {
      slot = b_.create<affine::AffineApplyOp>(loc_, AffineMap::get(0, numSymbols(), ir::toAffine(d, b_.getContext())),
                                              symbols_);
    }
    return slot;
  }

  void operands(const Arg<GVal> &a, SmallVectorImpl<Value> &out) {
    switch (a.tag) {
    case ArgTag::Rng:
      out.push_back(numbers_[numberIndex(a.num)]);
      out.push_back(numbers_[a.dim.value()]);
      break;
    case ArgTag::Dim:
      out.push_back(dim(a.dim));
      break;
    case ArgTag::DimList:
      for (const Dim &d : a.dimList())
        out.push_back(dim(d));
      break;
    case ArgTag::Num:
      out.push_back(number(a.num));
      break;
    default:
      for (const GVal &v : a.values())
        out.push_back(v.id >= 0 ? values_[v.id] : hole());
    }
  }

  /// The operand of type `none` that marks an absent entry of a list.
  Value hole() {
    if (!hole_) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(&func_.getBody().front());
      hole_ = b_.create<ir::NoneOp>(b_.getUnknownLoc(), b_.getNoneType());
    }
    return hole_;
  }

  void importNode(const GraphNode &n) {
    loc_ = locOf(n);
    ir::OpParts parts;
    Span<const Arg<GVal>> args = n.args.args();
    for (size_t i = 0; i < args.size(); ++i) {
      parts.operands.emplace_back();
      if (ir::isOperandKind(n.op->params[i].kind))
        operands(args[i], parts.operands.back());
      else if (Attribute a = ir::attributeOf(b_, args[i]))
        parts.attributes.push_back(b_.getNamedAttr(n.op->params[i].name, a));
    }
    SmallVector<Type> types;
    for (int32_t v : n.results)
      types.push_back(typeOf(v));
    Operation *op = ir::createOp(b_, loc_, *n.op, parts, types);
    for (size_t i = 0; i < n.results.size(); ++i)
      values_[n.results[i]] = op->getResult(i);
  }

  void finish() {
    SmallVector<Value> results;
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const GraphOutput &o = g_.outputs[i];
      results.push_back(values_[o.value]);
      if (!ir::same(o.strides, contiguousStrides(g_.values[o.value].sizes)))
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
