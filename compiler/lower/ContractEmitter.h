// Emits the tiles of one contraction inside of KernelEmitter's function. The loops, outside to inside:
//   group    a point of the outer dims and a block of rows; the parallel range counts (group, run)
//   run      panels of columns that share a packed block of rows, or one
//   slice    of k: operands are packed here
//   panel, tile    of columns and rows: accumulators in registers through the loop over k, then stored as partial sums
//   epilogue       after the last slice: the later stages, row by row on the stored sums, in lanes along n
#ifndef DLC_COMPILER_LOWER_CONTRACTEMITTER_H
#define DLC_COMPILER_LOWER_CONTRACTEMITTER_H

#include "compiler/lower/ContractPlan.h"
#include "compiler/lower/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace dlc::compiler {

class ContractEmitter {
public:
  ContractEmitter(KernelEmitter &emitter, ContractPlan &plan)
      : e_(emitter), p_(plan), b_(emitter.b_), loc_(emitter.loc_) {}
  void emit();

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<void(Value)>;

  /// The address of a linear read as sums of index times step.
  struct Steps {
    Value buffer;
    mlir::Type element;
    Value constant;                     ///< elements; constants and symbols of the map
    llvm::DenseMap<unsigned, Value> of; ///< by domain dim
  };
  /// A row of the tile: its indices, and what they add to the address in lhs.
  struct Row {
    Values indices;
    Value offset;
  };
  /// Where the tile's rows of lhs are: one pointer and a distance, or a pointer each.
  struct Rows {
    Values pointers;
    int64_t apart = 0; ///< elements, with one pointer
    Value step;        ///< elements from one k to the next
    mlir::Type element;
  };
  struct Columns {
    Value pointer;
    Value step; ///< elements from one k to the next
    mlir::Type element;
  };

  // EmitContract.cpp: loops, blocks and packing.
  void computeSizes();
  void reserveMemory();
  void emitGroup(Value group);
  void emitRun(Value first, Value count);
  void emitSlice(Value first, Value count, Value slice, Value slices);
  void packRhs(Value first, Value count);
  void inStrips(llvm::function_ref<void(Value, Value)> body);
  void packTransposed(Value first, Value count);
  Value tailOfSquare(Value k);
  void transpose(Values &lines);
  void packLhs();
  void packLhsRows();
  void packLhsColumns();
  void packLhsTransposed();
  void storeTileRow(Value tile, Value k, mlir::ArrayRef<Value> parts);
  /// Whether the packed lhs is [tile][k][row of the tile]; otherwise it is [row][k].
  bool lhsPanels() const { return p_.lhs.byColumns || p_.lhs.transposes; }
  void storePacked(Value block, Value offset, Value value, mlir::Value mask);
  Value maskOf(Value count);
  Value toSum(Value x, mlir::Type from);
  mlir::Type sumType() { return llvm::cast<ir::kernel::ValType>(p_.op.getResult().getType()).getElementType(); }
  mlir::Type sumLanes() { return e_.lanesOf(sumType()); }

  // EmitTile.cpp: one tile.
  Steps stepsOf(ir::kernel::ReadOp read);
  Value offsetOf(const Steps &steps, mlir::ArrayRef<unsigned> dims);
  void placeRows(Value row, llvm::SmallVectorImpl<Row> &rows);
  Value insideBounds();
  Rows rowsInPlace(mlir::ArrayRef<Row> places);
  Value rowsEarly(Value row);
  Rows neighbours(Value row);
  Rows rowsPacked(Value row);
  Columns columnsAt(Value panel, Value place);
  Value firstColumn(Value panel);
  Value lanesOfPanel(Value panel, Value column);
  Value zeroRow();
  Value multiplyAdd(Value x, Value y, Value sum);
  Value loadColumns(const Columns &columns, Value pointer);
  Value loadRow(const Rows &rows, Value pointer);
  Values trip(const Rows &rows, const Columns &columns, Value pointer, Value offset, int64_t count, Values sums);
  Values startPrefetch(const Columns &columns, Value panel, Value row, Value trips);
  Values prefetch(const Columns &columns, const Values &state);
  Values innerLoop(const Rows &rows, const Columns &columns, Value panel, Value row, Values sums);
  Values outerLoops(unsigned level, Values sums, llvm::function_ref<Values(Values)> body);
  Values sumProducts(Value panel, Value place, Value row, Values sums);
  void emitTile(Value panel, Value place, Value row, Value first, Value last);
  void emitLanes(Value n0, int64_t copies, Value mask, llvm::function_ref<void()> body);
  void emitDirect(Value n0, Value row, const Values &sums);
  void emitEpilogue(Value panel, Value row, Value sums);
  void emitEpilogueRows(Value row, Value rows, Value sums, int64_t copies);

  // Small things.
  Value number(int64_t x) { return e_.constant(e_.i64(), x); }
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value ceilDiv(Value x, Value y);
  Value least(Value x, Value y);
  Value most(Value x, Value y);
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y);
  Value at(Value pointer, mlir::Type element, Value offset);
  Value at(Value pointer, mlir::Type element, int64_t offset);
  Values decode(Value flat, mlir::ArrayRef<unsigned> dims);
  Values next(const Values &indices, mlir::ArrayRef<unsigned> dims);
  void setIndices(mlir::ArrayRef<unsigned> dims, const Values &indices);
  DimSet setOf(mlir::ArrayRef<unsigned> dims);
  /// A loop or branch whose body is a scope of the emitter with `dims` in addition.
  void loop(Value lo, Value hi, Value step, DimSet dims, Body body);
  Values loop(Value lo, Value hi, Value step, DimSet dims, Values init, llvm::function_ref<Values(Value, Values)> body);
  void branch(Value condition, DimSet dims, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  void inScope(mlir::Operation *op, DimSet dims, llvm::function_ref<void()> body);

  KernelEmitter &e_;
  ContractPlan &p_;
  mlir::OpBuilder &b_;
  mlir::Location loc_;
  Value rows_, columns_, innerSize_, rowBlocks_, panels_, runs_, slices_, innerSlices_; ///< of the whole kernel
  Value firstTask_, lastTask_;
  Value lhsBlock_, rhsBlock_, sums_; ///< scratch
  int64_t rowLength_ = 0;            ///< elements between rows (or tiles of them) of the packed lhs
  int64_t panelLength_ = 0;          ///< elements between panels of the packed rhs
  int64_t sumLength_ = 0;            ///< sums between rows of the partial sums
  Steps lhsSteps_, rhsSteps_;
  Value blockRow_, blockSize_; ///< of the group: first row and number of rows
  Value sliceBegin_, sliceSize_;
};

} // namespace dlc::compiler

#endif
