// Emits the loops of one planned kernel: func.func of two pointers with scf loops, arith/math/vector computation and
// llvm loads and stores. Every index is i64. See KernelPlan.h for what was decided before.
//
// Values: a scalar of a region that varies along the vectorised dim is a vector of `width` lanes while its loop is
// open, one for each unrolled copy `u`; all others stay scalars and are computed at the outermost loop they allow.
#ifndef DLC_COMPILER_LOWER_KERNELEMITTER_H
#define DLC_COMPILER_LOWER_KERNELEMITTER_H

#include "compiler/lower/KernelPlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace dlc::compiler {

/// Codes of the kernel's error slot (the slot holds the largest one seen). Division by zero is that of runtime/scalar.
enum class KernelFault : int64_t { None = 0, DivisionByZero = 1, IndexOutOfRange = 2 };

/// An index of an access as coefficients of dims and symbols; invalid if not linear.
struct LinearIndex {
  bool valid = true;
  llvm::SmallVector<int64_t> dims, syms;
  int64_t constant = 0;
};
LinearIndex toLinear(mlir::AffineExpr expr, unsigned dims, unsigned syms);

class KernelEmitter {
public:
  KernelEmitter(KernelPlan &plan, mlir::OpBuilder &builder);

  /// Emits the function at the builder's place; null after a reported error.
  mlir::Operation *emit();

  // What the scalar builder (MlirScalarBuilder.h) needs.
  mlir::OpBuilder &builder() { return b_; }
  mlir::Location loc() { return loc_; }
  /// Whether a condition (i1 or lanes of i1) holds in any lane.
  mlir::Value anyLane(mlir::Value mask);
  /// Sets the error slot if `condition` (i1 or lanes of i1) holds in a lane that counts.
  void raise(mlir::Value condition, int64_t code);
  /// A constant of a scalar type or splat over a vector type.
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value constantFloat(mlir::Type type, double value);
  /// Declares (once in the module) a C function and calls it with scalars.
  mlir::Value callC(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);

private:
  friend class ContractEmitter;

  /// A value and the number of the scope that holds it.
  struct Placed {
    mlir::Value value;
    unsigned level = 0;
  };
  /// One open loop body (the first is the function itself). Memo: values already computed here.
  struct Scope {
    DimSet dims = 0;
    mlir::Operation *child = nullptr; ///< op of this body that is being filled
    llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> memo;
    llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> lanes; ///< splats of scalars
  };
  /// The open vectorised loop.
  struct Lanes {
    bool open = false;
    unsigned copies = 1;
    mlir::Value iv;                      ///< index of lane 0 of copy 0
    llvm::SmallVector<mlir::Value> base; ///< index of lane 0 of each copy
    mlir::Value mask;                    ///< lanes that count, or null: all
    mlir::Value full;                    ///< i1: all lanes count; only in a single-body loop
  };
  /// The accumulators of a reduce: [slot][copy]; an argmax has two slots (value, position).
  using Accumulators = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;
  /// Where an access goes.
  struct Address {
    mlir::Value buffer;      ///< pointer to the first element
    mlir::Type element;      ///< as stored; bf16 is i16
    mlir::Value offset;      ///< i64, the part that all lanes share, or null
    bool addsLane = false;   ///< the index of the copy's lane 0 comes on top of `offset` (kept apart: the rest of
                             ///< the address does not change in the vectorised loop)
    mlir::Value lanes;       ///< vector of i64, the lanes' own part, or null
    unsigned neighbours = 0; ///< indices that put the lanes next to each other (1: contiguous, 0: same place)
    mlir::Value ok;          ///< i1 or lanes of i1: the address may be used, or null
    bool isContiguous() const { return neighbours == 1 && !lanes; }
    bool isSamePlace() const { return neighbours == 0 && !lanes; }
  };
  /// An access before it is computed.
  struct Access {
    mlir::BlockArgument buffer;
    mlir::AffineMap map;
    llvm::SmallVector<unsigned> dims;    ///< domain dim of each dim of the map
    llvm::SmallVector<mlir::Value> syms; ///< i64 or lanes of i64
    std::optional<ir::kernel::Bound> bound;
    llvm::SmallVector<int64_t> boundDims;
    llvm::SmallVector<mlir::Value> sizes; ///< i64
    unsigned copy = 0;
  };

  // EmitLoops.cpp
  void emitPrologue(mlir::Value bufs, mlir::Value ints);
  void emitParallel();
  void emitItems(llvm::MutableArrayRef<LoopItem> items);
  void emitLeaves(llvm::ArrayRef<unsigned> sinks);
  void emitLoop(LoopNode &node, mlir::Value lo, mlir::Value hi);
  void emitScalarLoop(LoopNode &node, mlir::Value lo, mlir::Value hi);
  void emitLaneLoop(LoopNode &node, mlir::Value lo, mlir::Value hi);
  void emitMaskedLoop(LoopNode &node, mlir::Value lo, mlir::Value hi, bool rotate);
  void emitTiles(LoopNode &node, mlir::Value lo, mlir::Value hi);
  void openLanes(LoopNode &node, mlir::Value iv, mlir::Value end);
  /// Builds `for iv = lo to hi step` carrying the node's accumulators and fills it by `body`. Without `withDim` it only
  /// goes from tile to tile.
  void buildLoop(LoopNode &node, mlir::Value lo, mlir::Value hi, int64_t step,
                 llvm::function_ref<void(mlir::Value)> body);
  void buildLoop(LoopNode &node, mlir::Value lo, mlir::Value hi, int64_t step, bool withDim,
                 llvm::function_ref<void(mlir::Value)> body);
  void withScope(DimSet dims, mlir::Operation *loop, llvm::function_ref<void()> body);
  mlir::Value dimSize(unsigned dim);

  // EmitReduce.cpp
  void startReduce(unsigned sink);
  void finishReduce(unsigned sink);
  void accumulate(unsigned sink);
  mlir::Value identity(ir::kernel::Combine combine, mlir::Type type);
  llvm::SmallVector<mlir::Value> combineSlots(ir::kernel::Combine combine, mlir::ValueRange acc, mlir::ValueRange x,
                                              bool folding);
  mlir::Value combine(ir::kernel::Combine combine, mlir::Value acc, mlir::Value x);
  llvm::SmallVector<mlir::Value> foldLanes(ir::kernel::Combine combine, llvm::SmallVector<mlir::Value> slots);
  void rotateAccumulators(const LoopNode &node);
  unsigned accCopies(unsigned sink) const;
  bool accIsLanes(unsigned sink) const;

  // EmitValues.cpp
  Placed eval(mlir::Value value, unsigned copy);
  Placed evalOp(mlir::Operation *op, mlir::Value value, unsigned copy);
  Placed evalScaledIndex(mlir::Operation *op, unsigned copy);
  Placed evalStage(mlir::Value stage, unsigned copy);
  mlir::Value emitScalarOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands, bool lanes);
  mlir::Value emitNarrowFloatOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands, bool lanes);
  mlir::Value emitCast(mlir::Operation *op, mlir::Value x, bool lanes);
  mlir::Value emitPrim(ir::kernel::PrimOp op, llvm::ArrayRef<mlir::Value> operands, bool lanes);
  mlir::Value guardDivisor(mlir::Operation *op, mlir::Value x, mlir::Value y);
  mlir::Value widen(mlir::Value x, mlir::Type from);
  mlir::Value narrow(mlir::Value x, mlir::Type to);
  mlir::Value splat(mlir::Value x);
  mlir::Value toI64(mlir::Value x);
  mlir::Value indexOf(unsigned dim, unsigned copy);
  unsigned levelOf(DimSet dims) const;
  /// Runs `make` with the builder in the body of scope `level`, before the loop being filled there.
  mlir::Value at(unsigned level, llvm::function_ref<mlir::Value()> make);

  // EmitAccess.cpp
  Placed evalRead(ir::kernel::ReadOp op, unsigned copy);
  void emitWrite(ir::kernel::WriteOp op, unsigned copy, mlir::Value value, llvm::ArrayRef<mlir::Value> syms);
  mlir::Value indexValue(mlir::AffineExpr expr, const Access &access);
  Address address(const Access &access);
  void addIndex(const Access &access, unsigned result, Address &address);
  bool addLinearIndex(const Access &access, unsigned result, Address &address);
  mlir::Value applyBound(const Access &access, mlir::Value index, mlir::Value size, Address &address);
  mlir::Value load(const Address &address, unsigned copy, mlir::Value pad);
  mlir::Value loadVector(const Address &address, unsigned copy, mlir::Value pad);
  mlir::Value maskOf(const Address &address);
  void store(const Address &address, unsigned copy, mlir::Value value);
  /// Runs `body` only if `condition` (i1 or null: always) holds.
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  mlir::Value lanePointers(const Address &address, unsigned copy, mlir::Value mask);
  mlir::Value pointer(const Address &address, unsigned copy);
  mlir::Value fromMemory(mlir::Value x, mlir::Type scalar);
  mlir::Value toMemory(mlir::Value x, mlir::Type scalar);

  // EmitStash.cpp
  Access stashAccess(const Stash &stash, unsigned copy);
  mlir::Value loadStash(const Stash &stash, unsigned copy);
  void storeStash(const Stash &stash, unsigned copy, mlir::Value value);

  // Types.
  mlir::Type i64() { return b_.getI64Type(); }
  mlir::Type i1() { return b_.getI1Type(); }
  mlir::Type ptr() { return mlir::LLVM::LLVMPointerType::get(b_.getContext()); }
  /// The type that stands for a region's scalar type: index is i64, bf16 is i16.
  mlir::Type repr(mlir::Type scalar);
  mlir::Type lanesOf(mlir::Type scalar) { return mlir::VectorType::get({static_cast<int64_t>(width_)}, scalar); }
  static bool isLanes(mlir::Value x) { return mlir::isa<mlir::VectorType>(x.getType()); }
  bool useLanes() const { return lanes_.open && width_ > 1; }
  mlir::Value iota(mlir::Type element);
  mlir::Value addI(mlir::Value x, mlir::Value y);
  mlir::Value mulI(mlir::Value x, mlir::Value y);
  mlir::Value andMasks(mlir::Value x, mlir::Value y);

  KernelPlan &plan_;
  mlir::OpBuilder &b_;
  mlir::Location loc_;
  ir::kernel::FuncOp kernel_;
  unsigned width_;
  bool failed_ = false;
  mlir::Value ints_, errorSlot_, parBegin_, parEnd_, tailEnd_;
  llvm::SmallVector<mlir::Value> args_;                       ///< pointer or number for each argument
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> strides_; ///< of each memref argument
  llvm::SmallVector<mlir::Value> dimIv_;
  llvm::SmallVector<Scope> scopes_;
  Lanes lanes_;
  llvm::DenseMap<unsigned, Accumulators> acc_;
  llvm::SmallVector<unsigned> openLoops_;
  mlir::Block *entry_ = nullptr;
};

} // namespace dlc::compiler

#endif
