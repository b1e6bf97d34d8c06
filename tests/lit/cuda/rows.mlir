// RUN: dlc-translate --emit-cuda %s | FileCheck %s

// A block a row: three passes, two reductions through warp shuffles and shared memory.
// CHECK: template <class Op, int kTeam, class T> __device__ __forceinline__ T dlc_row_reduce(T x)
// CHECK: void __launch_bounds__(256) k_softmax(
// CHECK-NEXT: const int lane = threadIdx.x;
// CHECK: for (long long p = blockIdx.x; p < [[R:v[0-9]+]]; p += gridDim.x) {
// CHECK: float [[A:acc[0-9]+]] = (-__int_as_float(0x7f800000));
// CHECK: for (long long i_c = lane; i_c < a3; i_c += 256) {
// CHECK: [[A]] = dlc_max::join([[A]], [[X:v[0-9]+]]);
// CHECK: const float [[M:v[0-9]+]] = dlc_row_reduce<dlc_max, 256>([[A]]);
// CHECK: for (long long i_c = lane;
// CHECK: - [[M]];
// CHECK: dlc_exp_f32(
// CHECK: const float [[S:v[0-9]+]] = dlc_row_reduce<dlc_add, 256>(
// CHECK: for (long long i_c = lane;
// CHECK: / [[S]];
// CHECK: a1[i_r * a1_s0 + i_c] =
kernel.func @softmax(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index,
                     %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
  %m = kernel.reduce over(r, c) by(c) combine [max] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.prim "exp"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %2 = arith.divf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}

// layer_norm(x + q) * g + b for rows of 96: a warp a row, eight rows a block; x + q is an output too. The reciprocal of
// the deviation is formed once a row, outside the loop.
// CHECK: void __launch_bounds__(256) k_layer_norm(
// CHECK: const int unit = threadIdx.y;
// CHECK: const bool active = base + unit < [[R:v[0-9]+]];
// CHECK: dlc_row_reduce<dlc_add, 32>
// CHECK: dlc_row_reduce<dlc_add, 32>
// CHECK: dlc_rsqrt_f32(
// CHECK: for (long long i_c = lane; i_c < 96ll; i_c += 32) {
// CHECK: if (active)
// CHECK-NEXT: a5[
kernel.func @layer_norm(%x: memref<?x?xf32, strided<[?, 1]>>, %q: memref<?x?xf32, strided<[?, 1]>>,
                        %g: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>,
                        %h: memref<?x?xf32, strided<[96, 1]>>, %y: memref<?x?xf32, strided<[96, 1]>>, %R: index,
                        %err: memref<i64>) domain(r = %R, c = 96) outs(%h, %y) {
  %hv = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.read %q[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %hv, %h[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[96, 1]>>
  %sum = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %hv : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %mu = kernel.map over(r) : !kernel.val<f32, [r]> {
    %0 = kernel.use %sum : !kernel.val<f32, [r]> -> f32
    %n = arith.constant 96.0 : f32
    %1 = arith.divf %0, %n : f32
    kernel.yield %1 : f32
  }
  %v = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %hv : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %mu : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    kernel.yield %3 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %hv : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %mu : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.use %v : !kernel.val<f32, [r]> -> f32
    %n = arith.constant 96.0 : f32
    %eps = arith.constant 1.0e-05 : f32
    %4 = arith.divf %3, %n : f32
    %5 = arith.addf %4, %eps : f32
    %6 = kernel.prim "rsqrt"(%5) : (f32) -> f32
    %7 = arith.mulf %2, %6 : f32
    %8 = kernel.read %g[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %9 = arith.mulf %7, %8 : f32
    %10 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %11 = arith.addf %9, %10 : f32
    kernel.yield %11 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[96, 1]>>
}

// Several results of one reduction; the position of the largest.
// CHECK: void __launch_bounds__(256) k_row_extremes(
// CHECK: dlc_pair<float> [[P:acc[0-9]+]] = {(-__int_as_float(0x7f800000)), 9223372036854775807ll};
// CHECK: [[P]] = dlc_argmax::join([[P]], dlc_pair<float>{{{v[0-9]+}}, i_c});
// CHECK: dlc_row_reduce<dlc_argmax, 256>([[P]]).index;
// CHECK: if (lane == 0)
kernel.func @row_extremes(%x: memref<?x?xf32, strided<[?, 1]>>, %lo: memref<?xf32, strided<[1]>>,
                          %hi: memref<?xf32, strided<[1]>>, %at: memref<?xi64, strided<[1]>>, %R: index, %C: index,
                          %err: memref<i64>) domain(r = %R, c = %C) outs(%lo, %hi, %at) {
  %m:3 = kernel.reduce over(r, c) by(c) combine [min, max, argmax] : !kernel.val<f32, [r]>, !kernel.val<f32, [r]>, !kernel.val<i64, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0, %0, %0 : f32, f32, f32
  }
  kernel.write %m#0, %lo[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
  kernel.write %m#1, %hi[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
  kernel.write %m#2, %at[affine_map<(d0) -> (d0)>] : !kernel.val<i64, [r]>, memref<?xi64, strided<[1]>>
}

// Everything to one number: one block, rows and columns as one loop.
// CHECK: void __launch_bounds__(256) k_sum_all(
// CHECK: if (blockIdx.x == 0) {
// CHECK: const long long [[T:v[0-9]+]] = a2 * a3;
// CHECK: for (long long [[E:e[0-9]+]] = lane; [[E]] < [[T]]; [[E]] += 256) {
// CHECK-NEXT: const long long i_r = dlc_index_div([[E]], a3);
// CHECK-NEXT: const long long i_c = dlc_index_mod([[E]], a3);
kernel.func @sum_all(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<f32>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %s = kernel.reduce over(r, c) by(r, c) combine [add] : !kernel.val<f32, []> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %s, %y[affine_map<() -> ()>] : !kernel.val<f32, []>, memref<f32>
}

// Mean over rows of log-sum-exp: rows in turn, the lanes share each row, the outer sum is the same in all lanes.
// CHECK: void __launch_bounds__(256) k_mean_lse(
// CHECK: if (blockIdx.x == 0) {
// CHECK: float [[OUT:acc[0-9]+]] = 0.0f;
// CHECK: for (long long i_r = 0; i_r < a2; ++i_r) {
// CHECK: dlc_row_reduce<dlc_max, 256>
// CHECK: dlc_row_reduce<dlc_add, 256>
// CHECK: [[OUT]] = dlc_add::join([[OUT]],
// CHECK-NOT: dlc_row_reduce
// CHECK: if (lane == 0)
kernel.func @mean_lse(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<f32>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %m = kernel.reduce over(r, c) by(c) combine [max] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.prim "exp"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  %t = kernel.reduce over(r) by(r) combine [add] : !kernel.val<f32, []> {
    %0 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %1 = kernel.prim "log"(%0) : (f32) -> f32
    %2 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %3 = arith.addf %1, %2 : f32
    kernel.yield %3 : f32
  }
  %mean = kernel.map over() : !kernel.val<f32, []> {
    %0 = kernel.use %t : !kernel.val<f32, []> -> f32
    %1 = arith.index_cast %R : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.divf %0, %2 : f32
    kernel.yield %3 : f32
  }
  kernel.write %mean, %y[affine_map<() -> ()>] : !kernel.val<f32, []>, memref<f32>
}

// exp(x) is kept where x * sum will be written: it is loaded before that.
// CHECK: void __launch_bounds__(256) k_kept_in_output(
// CHECK: a1[i_r * a1_s0 + i_c] = [[E:v[0-9]+]];
// CHECK: dlc_row_reduce<dlc_add, 256>
// CHECK: [[KEPT:v[0-9]+]] = a1[i_r * a1_s0 + i_c];
// CHECK: a1[i_r * a1_s0 + i_c] =
// CHECK: a2[i_r * a2_s0 + i_c] =
kernel.func @kept_in_output(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>,
                            %z: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y, %z) {
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.prim "exp"(%0) : (f32) -> f32
    kernel.yield %1 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %p = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %2 = arith.mulf %0, %1 : f32
    kernel.yield %2 : f32
  }
  %q = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %p, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
  kernel.write %q, %z[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}
