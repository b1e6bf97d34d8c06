// Kernels that can't be lowered say why.
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" -kernel-to-loops -split-input-file -verify-diagnostics

// Row sums and column sums need opposite loop orders.
// expected-error @below {{needs a loop order in which the dims that a reduction keeps come before those it reduces}}
kernel.func @both(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?xf32, strided<[1]>>, %z: memref<?xf32, strided<[1]>>,
                  %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y, %z) {
  %a = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %b = kernel.reduce over(r, c) by(r) combine [add] : !kernel.val<f32, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
  kernel.write %b, %z[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [c]>, memref<?xf32, strided<[1]>>
}

// -----

// An output that is read must be read where it is written.
// expected-error @below {{reads and writes argument #0 through different maps}}
kernel.func @flip(%x: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%x) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0)[s0] -> (s0 - d0)>] syms(%n : index) : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %x[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{can't split dim 'r' over threads: a stage does not go along it freely}}
kernel.func @par(%x: memref<?xf32, strided<[1]>>, %y: memref<f32>, %n: index, %err: memref<i64>) domain(r = %n) outs(%y)
    attributes {schedule = #kernel.schedule<par = [r]>} {
  %a = kernel.reduce over(r) by(r) combine [add] : !kernel.val<f32, []> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<() -> ()>] : !kernel.val<f32, []>, memref<f32>
}

// -----

// expected-error @below {{can't vectorise dim 'r': a write may hit one place from several lanes}}
kernel.func @scatter(%g: memref<?xf32, strided<[1]>>, %i: memref<?xi64, strided<[1]>>, %y: memref<?xf32, strided<[1]>>,
                     %n: index, %m: index, %err: memref<i64>) domain(r = %n) outs(%y)
    attributes {schedule = #kernel.schedule<vec = {r = 8}>} {
  %a = kernel.map over(r) : !kernel.val<f32, [r]> {
    %0 = kernel.read %g[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  %k = kernel.map over(r) : !kernel.val<i64, [r]> {
    %0 = kernel.read %i[affine_map<(d0) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    kernel.yield %0 : i64
  }
  kernel.write %a, %y[affine_map<(d0)[s0] -> (s0)>] syms(%k : !kernel.val<i64, [r]>) bound check [0] of (%m) accumulate add : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @prim(%x: memref<?xf32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>, %n: index, %err: memref<i64>)
    domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<i32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    // expected-error @below {{'exp' has no lowering for these operands and this result}}
    %1 = kernel.prim "exp"(%0) : (f32) -> i32
    kernel.yield %1 : i32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [i]>, memref<?xi32, strided<[1]>>
}

// -----

// A sum over the columns of a product would need all of them at once.
// expected-error @below {{a kernel with a contraction has no other reduction}}
kernel.func @row_sums(%x: memref<?x?xf32, strided<[?, 1]>>, %w: memref<?x?xf32, strided<[?, 1]>>,
    %y: memref<?xf32, strided<[1]>>, %M: index, %N: index, %K: index, %err: memref<i64>) domain(m = %M, n = %N, k = %K) outs(%y) {
  %s = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d2, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %r = kernel.reduce over(m, n) by(n) combine [add] : !kernel.val<f32, [m]> {
    %0 = kernel.use %s : !kernel.val<f32, [m, n]> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %r, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [m]>, memref<?xf32, strided<[1]>>
}
