// RUN: dlc-translate --emit-cuda %s | FileCheck %s

// Elementwise with a broadcast row: one thread a point, 64-bit indices, rows by division.
// CHECK-LABEL: __device__ __forceinline__ float dlc_gelu_erf_f32(float a)
// CHECK: extern "C" __global__ void __launch_bounds__(256) k_gelu_bias(const float *a0, const float *a1, float *a2, long long *err, long long a0_s0, long long a2_s0, long long a3, long long a4) {
// CHECK: const long long [[N:v[0-9]+]] = a3 * a4;
// CHECK-NEXT: for (long long p = (long long)blockIdx.x * 256 + threadIdx.x; p < [[N]]; p += (long long)gridDim.x * 256) {
// CHECK-NEXT: const long long i_r = dlc_index_div(p, a4);
// CHECK-NEXT: const long long i_c = dlc_index_mod(p, a4);
// CHECK-NEXT: const float [[X:v[0-9]+]] = a0[i_r * a0_s0 + i_c];
// CHECK-NEXT: const float [[B:v[0-9]+]] = a1[i_c];
// CHECK-NEXT: const float [[S:v[0-9]+]] = [[X]] + [[B]];
// CHECK-NEXT: const float [[G:v[0-9]+]] = dlc_gelu_erf_f32([[S]]);
// CHECK-NEXT: a2[i_r * a2_s0 + i_c] = [[G]];
kernel.func @gelu_bias(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                       %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %g = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    %3 = kernel.prim "gelu_erf"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  kernel.write %g, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}

// Constant sizes and strides: 32-bit indices. Two outputs, one of them transposed; the f64 scalar travels bit-cast.
// CHECK: void __launch_bounds__(256) k_scale_both(const float *a0, float *a1, float *a2, long long *err, long long a3_bits) {
// CHECK-NEXT: const double a3 = __longlong_as_double(a3_bits);
// CHECK: for (int p = (int)blockIdx.x * 256 + threadIdx.x
// CHECK: const int i_r = p / 7;
// CHECK: const int i_c = p % 7;
// CHECK: a1[i_r * 7 + i_c] =
// CHECK: a2[i_c * 5 + i_r] =
kernel.func @scale_both(%x: memref<?x?xf32, strided<[7, 1]>>, %y: memref<?x?xf32, strided<[7, 1]>>,
                        %z: memref<?x?xf32, strided<[5, 1]>>, %s: f64, %err: memref<i64>)
    domain(r = 5, c = 7) outs(%y, %z) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[7, 1]>> -> f32
    %1 = arith.truncf %s : f64 to f32
    %2 = arith.mulf %0, %1 : f32
    kernel.yield %2 : f32
  }
  %b = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %a : !kernel.val<f32, [r, c]> -> f32
    %1 = math.sqrt %0 : f32
    kernel.yield %1 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[7, 1]>>
  kernel.write %b, %z[affine_map<(d0, d1) -> (d1, d0)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[5, 1]>>
}

// Outputs over unlike dims have points of their own.
// CHECK: void __launch_bounds__(256) k_outer_and_row(
// CHECK: for (long long p = {{.*}} p < [[N:v[0-9]+]];
// CHECK: for (long long p =
// CHECK: a3[i_c] =
kernel.func @outer_and_row(%x: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>,
                           %y: memref<?x?xf32, strided<[?, 1]>>, %z: memref<?xf32, strided<[1]>>, %R: index, %C: index,
                           %err: memref<i64>) domain(r = %R, c = %C) outs(%y, %z) {
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.mulf %0, %1 : f32
    kernel.yield %2 : f32
  }
  %n = kernel.map over(c) : !kernel.val<f32, [c]> {
    %0 = kernel.read %b[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = arith.negf %0 : f32
    kernel.yield %1 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
  kernel.write %n, %z[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [c]>, memref<?xf32, strided<[1]>>
}

// In place: the output is its own input.
// CHECK: void __launch_bounds__(256) k_accumulate_into(const float *a0, float *a1,
// CHECK: a1[i_i] =
kernel.func @accumulate_into(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %N: index,
                             %err: memref<i64>) domain(i = %N) outs(%y) {
  %s = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %y[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %s, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// The schedule's thread count.
// CHECK: void __launch_bounds__(128) k_few_threads(
// CHECK: (long long)blockIdx.x * 128 + threadIdx.x
kernel.func @few_threads(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %N: index,
                         %err: memref<i64>) domain(i = %N) outs(%y) attributes {schedule = #kernel.schedule<gpu = {threads = 128}>} {
  %s = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %s, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}
