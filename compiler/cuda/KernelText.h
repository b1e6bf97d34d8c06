// The state of printing one kernel. KernelText.cpp prints loops and reductions, ScalarText.cpp the scalars of regions,
// AccessText.cpp reads and writes.
//
// The loop tree comes from the lowering's plan. The outermost loops in which nothing depends on another iteration are
// the kernel's *points*; a *team* of lanes (a block, a warp, a column of threads, or one thread) takes a point. Below
// the points, loops without loops inside are split over the team, the others are run by all lanes alike.
#ifndef DLC_COMPILER_CUDA_KERNELTEXT_H
#define DLC_COMPILER_CUDA_KERNELTEXT_H

#include "compiler/cuda/CudaEmitter.h"
#include "compiler/cuda/CudaPrelude.h"
#include "compiler/cuda/CudaPrims.h"
#include "compiler/lower/KernelPlan.h"
#include "runtime/scalar/TextBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace dlc::compiler {

/// What the kernels of one program share.
struct CudaShared {
  CudaPrims prims;
  std::set<CudaHelper> helpers;
};

class KernelText {
public:
  KernelText(const KernelPlan &plan, CudaShared &shared) : plan_(plan), func_(plan.func), shared_(shared) {}

  /// Prints the kernel into `text`; fails after a reported error.
  mlir::LogicalResult print(std::string &text, CudaKernel &info);

private:
  using Kind = scalar::Kind;

  /// A scalar in the text.
  struct Term {
    std::string text;
    Kind kind = Kind::F32;
    unsigned level = 0;
  };
  /// One open block of text. `dims` maps each dim bound here to the expression of its index. The header is printed when
  /// the block is closed: until then lines may still be added before it.
  struct Scope {
    std::string header, text, indent;
    llvm::DenseMap<unsigned, std::string> dims;
    llvm::DenseMap<mlir::Value, Term> memo;
    llvm::StringMap<std::string> loads;
  };
  /// An accumulator: its variable, type and the combine's struct.
  struct Accumulator {
    std::string name, type, combine;
    Kind kind = Kind::F32;
    bool isPair = false;
  };
  /// Nested loops run as one, outermost first.
  struct Nest {
    llvm::SmallVector<const LoopNode *> loops;
    bool isLeaf = false;
  };
  enum class Team { Thread, Row, Column };

  // KernelText.cpp
  void chooseTeam();
  bool chooseIndexKind();
  void printHeader(std::string &text);
  void printPhase(const LoopItem &item);
  llvm::SmallVector<const LoopNode *> pointLoops(const LoopItem &item);
  void openPoints(llvm::ArrayRef<const LoopNode *> loops);
  void printItems(llvm::ArrayRef<LoopItem> items);
  void printNest(const LoopNode &node);
  Nest nestOf(const LoopNode &node);
  bool mustBeSerial(const Nest &nest);
  void declareAccumulators(llvm::ArrayRef<const LoopNode *> loops);
  void finishReduce(unsigned sink, bool joinTeam);
  void printSink(unsigned sink);
  void accumulate(ir::kernel::ReduceOp reduce, unsigned sink);
  std::string position(ir::kernel::ReduceOp reduce);
  std::string product(llvm::ArrayRef<unsigned> dims);
  void bindDims(Scope &scope, llvm::ArrayRef<unsigned> dims, const std::string &flat);
  Accumulator makeAccumulator(ir::kernel::ReduceOp reduce, unsigned result);

  // ScalarText.cpp
  Term eval(mlir::Value value);
  Term evalMap(mlir::Value stage);
  Term evalOp(mlir::Operation *op);
  Term evalPrim(mlir::Operation *op, llvm::StringRef name, llvm::ArrayRef<Term> operands, bool isUnsigned);
  std::string arith(mlir::Operation *op, llvm::ArrayRef<Term> operands);
  std::string castText(mlir::Operation *op, const Term &x);
  std::string compareInts(mlir::Operation *op, llvm::ArrayRef<Term> operands);
  Term constantTerm(mlir::Operation *op);
  std::string rounded(mlir::Type type, const std::string &expression);
  static Kind kindOf(mlir::Type type, bool isUnsigned = false);

  // AccessText.cpp
  Term evalRead(ir::kernel::ReadOp read);
  void printWrite(ir::kernel::WriteOp write);
  /// Index expressions of an access with the level at which all of them exist.
  llvm::SmallVector<Term> indices(mlir::AffineMap map, llvm::ArrayRef<unsigned> dims, mlir::ValueRange syms);
  Term affine(mlir::AffineExpr expr, llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<Term> syms);
  Term loadStash(const Stash &stash);
  void storeStash(const Stash &stash, const Term &value);
  std::string stashElement(const Stash &stash);
  bool maySeeOther(ir::kernel::WriteOp write);
  /// Applies the bound to `list` and returns the condition under which the access is made, or "".
  std::string applyBound(ir::kernel::Bound bound, llvm::ArrayRef<int64_t> positions, mlir::ValueRange sizes,
                         llvm::SmallVector<Term> &list, unsigned level);
  std::string element(mlir::Value buffer, llvm::ArrayRef<Term> list);
  std::string loaded(mlir::Type stored, mlir::Type as, const std::string &element);
  std::string stored(mlir::Type stored, const Term &value);

  // Text and scopes.
  Scope &top() { return scopes_.back(); }
  void open(const std::string &line);
  void close();
  void line(unsigned level, const std::string &text) { scopes_[level].text += scopes_[level].indent + text + "\n"; }
  void line(const std::string &text) { line(scopes_.size() - 1, text); }
  /// Adds `const type vN = expression;` at a level and returns the name.
  std::string define(unsigned level, const std::string &type, const std::string &expression);
  unsigned innermost() const { return scopes_.size() - 1; }
  Term dimTerm(unsigned dim);
  std::string sizeOf(unsigned dim);
  std::string argName(unsigned arg) const { return "a" + std::to_string(arg); }
  mlir::InFlightDiagnostic error(mlir::Operation *op);
  const char *indexType() const { return indexKind_ == Kind::I32 ? "int" : "long long"; }

  const KernelPlan &plan_;
  ir::kernel::FuncOp func_;
  CudaShared &shared_;
  std::vector<Scope> scopes_;
  llvm::DenseMap<mlir::Value, Accumulator> accumulators_;
  llvm::DenseMap<unsigned, bool> inLeaf_; ///< of a reduce: whether lanes hold partial results
  llvm::SmallVector<mlir::Value> written_;
  unsigned innerLoop_ = ~0u;                                           ///< the plan's number of the innermost open loop
  llvm::SmallVector<unsigned> nestDims_;                               ///< dims that the open leaf nest shares out
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned>> stashDims_; ///< nestDims_ where a stash was filled
  CudaKernel info_;
  Team team_ = Team::Thread;
  unsigned lanes_ = 1, units_ = 1;
  bool guarded_ = false; ///< whether a team may have no point of its own
  Kind indexKind_ = Kind::I64;
  unsigned count_ = 0;
  bool failed_ = false;
};

} // namespace dlc::compiler

#endif // DLC_COMPILER_CUDA_KERNELTEXT_H
