// Rewrites a function by its groups: units in dependency order, a launch in the place of each group.
#include "compiler/fusion/FusePass.h"
#include "compiler/fusion/Contract.h"
#include "compiler/fusion/EmitKernel.h"
#include "compiler/fusion/Order.h"
#include "compiler/fusion/Recompute.h"
#include "compiler/fusion/Rematerialize.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

class Rewriter {
public:
  Rewriter(ModuleOp module, func::FuncOp func, const FusionOptions &options, unsigned &count)
      : module_(module), func_(func), block_(func.getBody().front()), symbols_(func), layouts_(symbols_),
        options_(options), count_(count) {}

  void run() {
    setFunctionLayouts(func_, layouts_);
    chooseLibraryProducts(func_, layouts_, options_);
    std::unique_ptr<Graph> graph = group();
    while (keepsLowered(*graph))
      graph = group();
    if (!groups_.empty())
      rewrite(*graph);
  }

private:
  std::unique_ptr<Graph> group() {
    auto graph = std::make_unique<Graph>(block_, layouts_);
    groups_ = findGroups(*graph, options_);
    if (options_.fuse && options_.fuel < 0 && recomputeCheapValues(*graph, groups_)) {
      graph = std::make_unique<Graph>(block_, layouts_);
      groups_ = findGroups(*graph, options_);
    }
    if (options_.fuse && options_.fuel < 0 && rematerialize(*graph, groups_)) {
      graph = std::make_unique<Graph>(block_, layouts_);
      groups_ = findGroups(*graph, options_);
    }
    return graph;
  }

  /// Leaves products to the library whose kernel the target has no code for. True if there were any: then the groups
  /// are stale.
  bool keepsLowered(const Graph &graph) {
    bool changed = false;
    for (const FusedGroup &g : groups_)
      for (uint32_t m : g.members)
        if (graph.node(m).kind == NodeKind::Contract && options_.lowers) {
          OpBuilder inModule = OpBuilder::atBlockEnd(module_.getBody());
          ir::kernel::FuncOp trial = emitKernel(graph, g, inModule, "trial").func;
          if (!options_.lowers(trial)) {
            graph.node(m).op->setAttr(kLibraryAttr, UnitAttr::get(module_.getContext()));
            changed = true;
          }
          trial->erase();
        }
    return changed;
  }

  void rewrite(const Graph &graph) {
    std::vector<OrderedUnit> order = orderOf(graph, groups_);
    // All kernels before the first launch: emission reads the function as it was.
    OpBuilder inModule = OpBuilder::atBlockEnd(module_.getBody());
    WeightPacker packer(func_, layouts_, options_);
    for (FusedGroup &g : groups_) {
      g.packed = packer.packedFor(graph, g);
      kernels_.push_back(emitKernel(graph, g, inModule, nameOf(graph, g)));
      symbolNames_.push_back(shareKernel(kernels_.back().func));
    }
    emit(graph, order);
    removeDeadViews();
  }

  void emit(const Graph &graph, ArrayRef<OrderedUnit> order) {
    Operation *end = block_.getTerminator();
    std::vector<Operation *> dead;
    for (const OrderedUnit &u : order) {
      if (u.group >= 0) {
        launch(graph, static_cast<size_t>(u.group), end);
        for (uint32_t m : groups_[u.group].members)
          dead.push_back(graph.node(m).op);
      } else if (graph.node(u.node).op != end) {
        graph.node(u.node).op->moveBefore(end);
      }
    }
    for (Operation *op : llvm::reverse(dead)) {
      op->dropAllUses();
      op->erase();
    }
  }

  std::string nameOf(const Graph &graph, const FusedGroup &g) {
    std::string name = "k" + std::to_string(count_++);
    for (uint32_t m : g.members)
      if (name.size() < 48)
        name += std::string("_") + graph.node(m).info->name;
    return name;
  }

  void launch(const Graph &graph, size_t group, Operation *end) {
    MLIRContext *c = module_.getContext();
    const FusedGroup &g = groups_[group];
    const EmittedKernel &k = kernels_[group];
    OpBuilder b(end);
    OperationState state(graph.node(g.members.back()).op->getLoc(), "dlc.launch");
    for (Value v : k.inputs)
      state.addOperands(replaced_.count(v) ? replaced_[v] : v);
    state.addOperands(k.numbers);
    for (uint32_t m : k.outputs)
      state.addTypes(graph.node(m).result().getType());
    state.addAttribute("kernel", FlatSymbolRefAttr::get(symbolNames_[group]));
    unsigned numSymbols = static_cast<unsigned>(symbols_.count());
    state.addAttribute("offsets", AffineMapAttr::get(toAffine(k.offsets, numSymbols, c)));
    state.addAttribute("ints", AffineMapAttr::get(toAffine(k.ints, numSymbols, c)));
    state.addAttribute("number_at", b.getDenseI64ArrayAttr(k.numberAt));
    state.addAttribute("inplace", b.getDenseI64ArrayAttr(k.inplace));
    state.addAttribute("cost", b.getI64IntegerAttr(k.cost));
    if (k.mayFail)
      state.addAttribute("may_fail", b.getUnitAttr());
    SmallVector<Attribute> ops;
    for (uint32_t m : g.members)
      ops.push_back(b.getStringAttr(graph.node(m).info->name));
    state.addAttribute("ops", b.getArrayAttr(ops));
    Operation *op = b.create(state);
    for (size_t i = 0; i < k.outputs.size(); ++i) {
      Value old = graph.node(k.outputs[i]).result(), fresh = op->getResult(static_cast<unsigned>(i));
      if (isChannelsLast(old))
        setChannelsLast(fresh);
      old.replaceAllUsesWith(fresh);
      replaced_[old] = fresh;
    }
  }

  /// The symbol of an equal kernel that is there already (then `func` is erased), or of this one.
  StringAttr shareKernel(ir::kernel::FuncOp func) {
    StringAttr name = func.getSymNameAttr();
    func.setSymName("k");
    std::string text;
    llvm::raw_string_ostream os(text);
    func->print(os, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    func.setSymNameAttr(name);
    auto [it, fresh] = shared_.try_emplace(text, name);
    if (!fresh)
      func->erase();
    return it->second;
  }

  void removeDeadViews() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block_)))
      if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }

  ModuleOp module_;
  func::FuncOp func_;
  Block &block_;
  Symbols symbols_;
  Layouts layouts_;
  FusionOptions options_;
  std::vector<FusedGroup> groups_;
  std::vector<EmittedKernel> kernels_;
  std::vector<StringAttr> symbolNames_;
  DenseMap<Value, Value> replaced_; // results of fused ops by those of launches
  llvm::StringMap<StringAttr> shared_;
  unsigned &count_; ///< of all functions of the module: names are symbols
};

class FusePass : public PassWrapper<FusePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FusePass)
  FusePass() = default;
  FusePass(const FusePass &o) : PassWrapper(o), options_(o.options_) {}
  explicit FusePass(FusionOptions options) : options_(options) {}
  StringRef getArgument() const final { return "dlc-fuse"; }
  StringRef getDescription() const final { return "Group tensor ops into kernels (phase fused)"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::kernel::KernelDialect>(); }
  void runOnOperation() override {
    FusionOptions options = options_;
    options.fuse &= !noFuse_;
    if (contract_.getNumOccurrences())
      options.contract = contract_;
    if (vectorBits_)
      options.vectorBits = vectorBits_;
    if (fuel_ >= 0)
      options.fuel = fuel_;
    try {
      fuseModule(getOperation(), options);
    } catch (const Error &e) {
      getOperation().emitError(e.what());
      signalPassFailure();
    }
  }

private:
  FusionOptions options_;
  Option<bool> noFuse_{*this, "no-fuse", llvm::cl::desc("One kernel an op"), llvm::cl::init(false)};
  Option<int64_t> contract_{*this, "contract", llvm::cl::desc("Products as kernels: -1 some, 0 none, 1 all")};
  Option<unsigned> vectorBits_{*this, "vector-bits", llvm::cl::desc("Of the processor"), llvm::cl::init(0)};
  Option<int64_t> fuel_{*this, "fuel", llvm::cl::desc("Stop after this many merges"), llvm::cl::init(-1)};
};

} // namespace

void fuseModule(ModuleOp module, const FusionOptions &options) {
  unsigned kernels = 0;
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!func.isDeclaration())
      Rewriter(module, func, options, kernels).run();
}

std::unique_ptr<Pass> createFusePass(FusionOptions options) { return std::make_unique<FusePass>(options); }

} // namespace dlc::compiler
