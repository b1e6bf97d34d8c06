// Builds kernel.func from C++ (used by compiler/fusion and tests). One object builds one kernel.
//
// Softmax over rows:
//
//   KernelBuilder k(moduleBuilder, loc, "softmax");
//   Value x = k.buffer(f32, {ShapedType::kDynamic, 1});             // strides; sizes are always dynamic
//   Value y = k.output(f32, {ShapedType::kDynamic, 1});
//   k.dim("r", k.index());                                          // size = a new index argument
//   k.dim("c", k.index());
//   AffineMap id = AffineMap::getMultiDimIdentityMap(2, ctx);
//   Value m = k.reduce({"r", "c"}, {"c"}, {Combine::max}, [&](StageBuilder &s) { s.yield({s.read(x, id)}); })[0];
//   Value e = k.map({"r", "c"}, [&](StageBuilder &s) {
//     Value d = s.b.create<arith::SubFOp>(s.loc, s.read(x, id), s.use(m));
//     s.yield({s.prim("exp", {d}, f32)});
//   })[0];
//   Value t = k.reduce({"r", "c"}, {"c"}, {Combine::add}, [&](StageBuilder &s) { s.yield({s.use(e)}); })[0];
//   Value o = k.map({"r", "c"}, [&](StageBuilder &s) {
//     s.yield({s.b.create<arith::DivFOp>(s.loc, s.use(e), s.use(t))});
//   })[0];
//   k.write(o, y, id);
//   kernel::FuncOp func = k.finish();                               // adds the error slot, fixes sizes and outs
//
// Arguments may be added at any time before finish(). Scalars (i64, f64): k.scalar(type). A gather passes scalars of
// the region as symbols of the map: s.read(w, map, {row}, Bound::check, {0}, {numRows}).
#ifndef DLC_DIALECTS_KERNEL_KERNELBUILDER_H
#define DLC_DIALECTS_KERNEL_KERNELBUILDER_H

#include "dialects/kernel/KernelDialect.h"

#include "mlir/IR/Builders.h"

namespace dlc::ir::kernel {

/// Builds the region of one stage. `b` inserts at its end.
class StageBuilder {
public:
  StageBuilder(mlir::OpBuilder b, mlir::Location loc) : b(b), loc(loc) {}

  /// Element of `buffer`; `map` dims are the stage's dims, its symbols are `syms`. `as` is i1 for a bool buffer.
  mlir::Value read(mlir::Value buffer, mlir::AffineMap map, mlir::ValueRange syms = {}, mlir::Type as = {});
  /// The same with bounds: `dims` are positions of the map's results, `sizes` index values, `pad` for Bound::pad only.
  mlir::Value read(mlir::Value buffer, mlir::AffineMap map, mlir::ValueRange syms, Bound bound,
                   llvm::ArrayRef<int64_t> dims, mlir::ValueRange sizes, mlir::Value pad = {}, mlir::Type as = {});
  /// Value of an earlier stage at this point.
  mlir::Value use(mlir::Value stage);
  /// Index of this point along `dim`, i64.
  mlir::Value index(llvm::StringRef dim);
  /// Scalar primitive.
  mlir::Value prim(llvm::StringRef name, mlir::ValueRange operands, mlir::Type result);
  /// Ends the region.
  void yield(mlir::ValueRange values);

  mlir::OpBuilder b;
  mlir::Location loc;
};

/// Builds one kernel.func.
class KernelBuilder {
public:
  using Body = llvm::function_ref<void(StageBuilder &)>;

  /// Inserts the kernel where `b` stands (in a module).
  KernelBuilder(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name);

  /// Adds an input with the given element type and strides (kDynamic = an input of the kernel).
  mlir::Value buffer(mlir::Type element, llvm::ArrayRef<int64_t> strides);
  /// Adds an output; it must be written once.
  mlir::Value output(mlir::Type element, llvm::ArrayRef<int64_t> strides);
  /// Adds an index argument.
  mlir::Value index();
  /// Adds an i64 or f64 argument.
  mlir::Value scalar(mlir::Type type);
  /// Adds a dim whose size is an index argument, or a constant.
  void dim(llvm::StringRef name, mlir::Value sizeArg);
  void dim(llvm::StringRef name, int64_t size);

  /// Adds a map stage; returns its values.
  mlir::ResultRange map(llvm::ArrayRef<llvm::StringRef> over, Body body);
  /// Adds a reduce stage; returns its values.
  mlir::ResultRange reduce(llvm::ArrayRef<llvm::StringRef> over, llvm::ArrayRef<llvm::StringRef> by,
                           llvm::ArrayRef<Combine> combines, Body body);
  /// Adds a contract stage; each body yields one scalar, and the sums have type `sum`.
  mlir::Value contract(llvm::ArrayRef<llvm::StringRef> over, llvm::ArrayRef<llvm::StringRef> by, mlir::Type sum,
                       Body lhs, Body rhs);
  /// Adds a write of a stage's value.
  WriteOp write(mlir::Value value, mlir::Value buffer, mlir::AffineMap map, mlir::ValueRange syms = {});
  /// Adds a write with checked indices and, if given, accumulation.
  WriteOp write(mlir::Value value, mlir::Value buffer, mlir::AffineMap map, mlir::ValueRange syms,
                std::optional<Bound> bound, llvm::ArrayRef<int64_t> dims, mlir::ValueRange sizes,
                std::optional<Combine> accumulate);
  /// A constant outside the stages, usable in all of them.
  mlir::OpBuilder &builder() { return body_; }

  /// Sets the schedule (optional).
  void schedule(ScheduleAttr schedule) { schedule_ = schedule; }
  /// Adds the error slot and returns the finished kernel.
  FuncOp finish();

private:
  mlir::ArrayAttr names(llvm::ArrayRef<llvm::StringRef> dims);
  static llvm::SmallVector<llvm::StringRef> without(llvm::ArrayRef<llvm::StringRef> dims,
                                                    llvm::ArrayRef<llvm::StringRef> removed);
  mlir::MemRefType memref(mlir::Type element, llvm::ArrayRef<int64_t> strides);
  mlir::ResultRange results(mlir::Operation *stage, mlir::ArrayAttr dims, llvm::ArrayRef<Combine> combines);

  mlir::Location loc_;
  FuncOp func_;
  mlir::OpBuilder body_;
  llvm::SmallVector<mlir::Attribute> dimNames_;
  llvm::SmallVector<int64_t> dimSizes_, outs_;
  ScheduleAttr schedule_;
};

} // namespace dlc::ir::kernel

#endif
