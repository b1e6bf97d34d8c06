// RUN: dlc-translate --emit-cuda %s | FileCheck %s

// Sum down the rows: 32 columns a block, 8 lanes a column, joined through shared memory.
// CHECK: template <class Op, int kTeam, int kUnits, class T> __device__ __forceinline__ T dlc_column_reduce(T x)
// CHECK: void __launch_bounds__(256) k_colsum(
// CHECK-NEXT: const int lane = threadIdx.y;
// CHECK-NEXT: const int unit = threadIdx.x;
// CHECK: for (long long base = (long long)blockIdx.x * 32; base < [[C:v[0-9]+]]; base += (long long)gridDim.x * 32) {
// CHECK-NEXT: const bool active = base + unit < [[C]];
// CHECK-NEXT: const long long p = active ? base + unit : [[C]] - 1;
// CHECK: for (long long i_r = lane; i_r < a2; i_r += 8) {
// CHECK: dlc_column_reduce<dlc_add, 8, 32>(
// CHECK: if (lane == 0 && active)
// CHECK-NEXT: a1[i_c] =
kernel.func @colsum(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?xf32, strided<[1]>>, %R: index, %C: index,
                    %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
  %s = kernel.reduce over(r, c) by(r) combine [add] : !kernel.val<f32, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %s, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [c]>, memref<?xf32, strided<[1]>>
}

// Normalise by column: the statistics and the rows of 32 columns by the same block.
// CHECK: void __launch_bounds__(256) k_center(
// CHECK: dlc_column_reduce<dlc_add, 8, 32>(
// CHECK: for (long long i_r = lane; i_r < a2; i_r += 8) {
// CHECK: if (active)
kernel.func @center(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index,
                    %err: memref<i64>) domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<order = [c, r]>} {
  %s = kernel.reduce over(r, c) by(r) combine [add] : !kernel.val<f32, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [c]> -> f32
    %2 = arith.index_cast %R : index to i64
    %3 = arith.sitofp %2 : i64 to f32
    %4 = arith.divf %1, %3 : f32
    %5 = arith.subf %0, %4 : f32
    kernel.yield %5 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}
