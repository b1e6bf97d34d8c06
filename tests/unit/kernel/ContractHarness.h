// Builds kernels with a contraction from a description, for the tests and the benchmark.
#ifndef DLC_TESTS_UNIT_KERNEL_CONTRACTHARNESS_H
#define DLC_TESTS_UNIT_KERNEL_CONTRACTHARNESS_H

#include "dialects/kernel/KernelBuilder.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace dlc::compiler {

/// C = A B, perhaps with an epilogue. Sizes of -1 are arguments of the kernel.
struct ProductSpec {
  int64_t m = -1, n = -1, k = -1;
  bool transA = false, transB = false; ///< the memory has the dims in the other order
  int64_t packed = 0;                  ///< columns of a panel in which B comes
  bool batch = false;
  enum Epilogue { None, BiasRelu, BiasGelu, Residual } epilogue = None;
  std::string schedule; ///< text of the attribute, or empty
};

/// The arguments are, in order: a, b, [bias or residual], c; [batch], m, n, k as index arguments where they are -1.
/// Buffers have dynamic outer strides; of c [batch, m, n] the last is 1.
inline ir::kernel::FuncOp buildProduct(mlir::OpBuilder &b, const ProductSpec &s) {
  using namespace mlir;
  using namespace ir::kernel;
  MLIRContext *ctx = b.getContext();
  KernelBuilder k(b, b.getUnknownLoc(), "product");
  Type f32 = b.getF32Type();
  constexpr int64_t any = ShapedType::kDynamic;
  int extra = s.batch ? 1 : 0;
  SmallVector<int64_t> matrix(extra + 1, any), panels{any, any, 1};
  matrix.push_back(1);
  Value a = k.buffer(f32, matrix), w = k.buffer(f32, s.packed ? panels : matrix), bias;
  if (s.epilogue == ProductSpec::Residual)
    bias = k.buffer(f32, matrix);
  else if (s.epilogue != ProductSpec::None)
    bias = k.buffer(f32, {1});
  Value c = k.output(f32, matrix);
  if (s.batch)
    k.dim("b", k.index());
  auto dim = [&](StringRef name, int64_t size) { size < 0 ? k.dim(name, k.index()) : k.dim(name, size); };
  dim("m", s.m);
  dim("n", s.n);
  dim("k", s.k);
  SmallVector<StringRef> over{"m", "n", "k"}, kept{"m", "n"};
  if (s.batch) {
    over.insert(over.begin(), "b");
    kept.insert(kept.begin(), "b");
  }
  unsigned rank = over.size();
  auto d = [&](unsigned i) { return getAffineDimExpr(i, ctx); };
  AffineExpr mDim = d(extra), nDim = d(extra + 1), kDim = d(extra + 2);
  auto mapOf = [&](unsigned dims, ArrayRef<AffineExpr> exprs) {
    SmallVector<AffineExpr> all;
    if (s.batch)
      all.push_back(d(0));
    all.append(exprs.begin(), exprs.end());
    return AffineMap::get(dims, 0, all, ctx);
  };
  AffineMap aMap = s.transA ? mapOf(rank, {kDim, mDim}) : mapOf(rank, {mDim, kDim});
  AffineMap bMap = s.transB ? mapOf(rank, {nDim, kDim}) : mapOf(rank, {kDim, nDim});
  if (s.packed)
    bMap = AffineMap::get(rank, 0, {nDim.floorDiv(s.packed), kDim, nDim % s.packed}, ctx);
  Value sum = k.contract(
      over, {"k"}, f32, [&](StageBuilder &r) { r.yield(r.read(a, aMap)); },
      [&](StageBuilder &r) { r.yield(r.read(w, bMap)); });
  AffineMap whole = mapOf(kept.size(), {d(extra), d(extra + 1)});
  if (s.epilogue != ProductSpec::None)
    sum = k.map(kept, [&](StageBuilder &r) {
      AffineMap row = AffineMap::get(kept.size(), 0, {d(extra + 1)}, ctx);
      Value other = r.read(bias, s.epilogue == ProductSpec::Residual ? whole : row);
      Value x = r.b.create<arith::AddFOp>(r.loc, r.use(sum), other);
      if (s.epilogue == ProductSpec::BiasRelu)
        x = r.prim("relu", {x}, f32);
      if (s.epilogue == ProductSpec::BiasGelu)
        x = r.prim("gelu_erf", {x}, f32);
      r.yield({x});
    })[0];
  k.write(sum, c, whole);
  FuncOp func = k.finish();
  if (!s.schedule.empty())
    func.setScheduleAttr(cast<ScheduleAttr>(parseAttribute("#kernel.schedule<" + s.schedule + ">", ctx)));
  return func;
}

} // namespace dlc::compiler

#endif
