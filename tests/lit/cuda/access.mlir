// RUN: dlc-translate --emit-cuda %s | FileCheck %s

// Rows of a table by index, checked: nothing is read and the error slot is set where the index is out of range.
// CHECK: void __launch_bounds__(256) k_embedding(
// CHECK: const long long [[I:v[0-9]+]] = a1[i_n];
// CHECK: const bool [[OK:v[0-9]+]] = [[J:v[0-9]+]] >= 0 && [[J]] < a3;
// CHECK: dlc_raise(err, ![[OK]], 2);
// CHECK: = [[OK]] ? a0[[[J]] * a0_s0 + i_c] : 0.0f;
kernel.func @embedding(%w: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>,
                       %y: memref<?x?xf32, strided<[?, 1]>>, %V: index, %N: index, %C: index, %err: memref<i64>)
    domain(n = %N, c = %C) outs(%y) {
  %o = kernel.map over(n, c) : !kernel.val<f32, [n, c]> {
    %0 = kernel.read %i[affine_map<(d0, d1) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    %1 = kernel.read %w[affine_map<(d0, d1)[s0] -> (s0, d1)>] syms(%0 : i64) bound wrap [0] of (%V) : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %1 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [n, c]>, memref<?x?xf32, strided<[?, 1]>>
}

// A window of three with zeros outside.
// CHECK: void __launch_bounds__(256) k_smooth(
// CHECK: ? a0[{{.*}}] : 0.0f;
kernel.func @smooth(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %N: index, %err: memref<i64>)
    domain(i = %N) outs(%y) {
  %o = kernel.map over(i) : !kernel.val<f32, [i]> {
    %zero = arith.constant 0.0 : f32
    %0 = kernel.read %x[affine_map<(d0) -> (d0 - 1)>] bound pad [0] of (%N) pad %zero : f32 : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = kernel.read %x[affine_map<(d0) -> (d0 + 1)>] bound pad [0] of (%N) pad %zero : f32 : memref<?xf32, strided<[1]>> -> f32
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    kernel.yield %4 : f32
  }
  kernel.write %o, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// Rows added to a table, in order: parallel over columns, serial over the indices.
// CHECK: void __launch_bounds__(256) k_scatter_add(
// CHECK: for (long long p =
// CHECK: for (long long i_n = 0; i_n < a3; ++i_n) {
// CHECK: if ({{v[0-9]+}})
// CHECK-NEXT: a2[{{.*}}] = dlc_add::join(
kernel.func @scatter_add(%x: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>,
                         %y: memref<?x?xf32, strided<[?, 1]>>, %N: index, %C: index, %V: index, %err: memref<i64>)
    domain(n = %N, c = %C) outs(%y) attributes {schedule = #kernel.schedule<order = [c, n]>} {
  %at = kernel.map over(n, c) : !kernel.val<i64, [n, c]> {
    %0 = kernel.read %i[affine_map<(d0, d1) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    kernel.yield %0 : i64
  }
  %v = kernel.map over(n, c) : !kernel.val<f32, [n, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %v, %y[affine_map<(d0, d1)[s0] -> (s0, d1)>] syms(%at : !kernel.val<i64, [n, c]>) bound check [0] of (%V) accumulate add : !kernel.val<f32, [n, c]>, memref<?x?xf32, strided<[?, 1]>>
}

// One-hot from the dim's own index; reversed and flattened reads.
// CHECK: void __launch_bounds__(256) k_one_hot_flip(
// CHECK: i_c{{.*}} == {{v[0-9]+}}
kernel.func @one_hot_flip(%t: memref<?xi64, strided<[1]>>, %x: memref<?x?xf32, strided<[4, 1]>>,
                          %y: memref<?x?xf32, strided<[?, 1]>>, %N: index, %C: index, %err: memref<i64>)
    domain(n = %N, c = %C) outs(%y) {
  %o = kernel.map over(n, c) : !kernel.val<f32, [n, c]> {
    %0 = kernel.read %t[affine_map<(d0, d1) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    %1 = kernel.index c : i64
    %2 = arith.cmpi eq, %1, %0 : i64
    %3 = kernel.read %x[affine_map<(d0, d1)[s0] -> ((s0 - d1 - 1) floordiv 4, (s0 - d1 - 1) mod 4)>] syms(%C : index) : memref<?x?xf32, strided<[4, 1]>> -> f32
    %zero = arith.constant 0.0 : f32
    %4 = arith.select %2, %3, %zero : f32
    kernel.yield %4 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [n, c]>, memref<?x?xf32, strided<[?, 1]>>
}
