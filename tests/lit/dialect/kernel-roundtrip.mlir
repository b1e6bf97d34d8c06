// Every form of the kernel dialect prints what it parses.
// RUN: dlc-opt %s | dlc-opt | FileCheck %s

// CHECK-LABEL: kernel.func @all(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<?xi64, strided<[1]>>, %arg2: memref<?xf32, strided<[1]>>, %arg3: memref<?xi64, strided<[1]>>, %arg4: index, %arg5: f64, %arg6: memref<i64>)
// CHECK-SAME: domain(r = %arg4, c = 16) outs(%arg2, %arg3)
// CHECK-SAME: attributes {schedule = #kernel.schedule<grain = 64, order = [r, c], par = [r], place = {s0 = out, s1 = recompute}, tail = single, unroll = 2, vec = {c = 8}>} {
kernel.func @all(%x: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>, %y: memref<?xf32, strided<[1]>>,
                 %z: memref<?xi64, strided<[1]>>, %R: index, %s: f64, %err: memref<i64>)
    domain(r = %R, c = 16) outs(%y, %z)
    attributes {schedule = #kernel.schedule<order = [r, c], vec = {c = 8}, unroll = 2, tail = single, par = [r],
                                            grain = 64, place = {s0 = out, s1 = recompute}>} {
  // CHECK: %cst = arith.constant
  %zero = arith.constant 0.0 : f32
  // CHECK: kernel.map over (r, c) : !kernel.val<f32, [r, c]> {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    // CHECK: kernel.read %arg1[#{{.*}}] : memref<?xi64, strided<[1]>> -> i64
    %0 = kernel.read %i[affine_map<(d0, d1) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    // CHECK: kernel.read %arg0[#{{.*}}] syms({{.*}} : i64) bound check [0] of(%arg4) : memref
    %1 = kernel.read %x[affine_map<(d0, d1)[s0] -> (s0, d1)>] syms(%0 : i64) bound check [0] of (%R) : memref<?x?xf32, strided<[?, 1]>> -> f32
    // CHECK: bound pad [0] of(%arg4) pad %cst : f32 : memref
    %2 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] bound pad [0] of (%R) pad %zero : f32 : memref<?x?xf32, strided<[?, 1]>> -> f32
    // CHECK: kernel.index c : i64
    %3 = kernel.index c : i64
    // CHECK: kernel.prim "exp"({{.*}}) : (f32) -> f32
    %4 = kernel.prim "exp"(%1) : (f32) -> f32
    %5 = arith.addf %4, %2 : f32
    kernel.yield %5 : f32
  }
  // CHECK: kernel.reduce over (r, c) by (c) combine [add, argmax] : !kernel.val<f32, [r]>, !kernel.val<i64, [r]> {
  %b:2 = kernel.reduce over(r, c) by(c) combine [add, argmax] : !kernel.val<f32, [r]>, !kernel.val<i64, [r]> {
    // CHECK: kernel.use {{.*}} : <f32, [r, c]> -> f32
    %0 = kernel.use %a : !kernel.val<f32, [r, c]> -> f32
    // CHECK: kernel.yield {{.*}} : f32, f32
    kernel.yield %0, %0 : f32, f32
  }
  // CHECK: kernel.write {{.*}}, %arg2[#{{.*}}] syms({{.*}} : !kernel.val<i64, [r]>) bound wrap [0] of(%arg4) accumulate add : <f32, [r]>, memref
  kernel.write %b#0, %y[affine_map<(d0)[s0] -> (s0)>] syms(%b#1 : !kernel.val<i64, [r]>) bound wrap [0] of (%R) accumulate add : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
  // CHECK: kernel.write {{.*}}, %arg3[#{{.*}}] : <i64, [r]>, memref
  kernel.write %b#1, %z[affine_map<(d0) -> (d0)>] : !kernel.val<i64, [r]>, memref<?xi64, strided<[1]>>
}

// CHECK-LABEL: kernel.func @scalar(%arg0: memref<f32>, %arg1: memref<i64>) domain() outs(%arg0) {
kernel.func @scalar(%y: memref<f32>, %err: memref<i64>) domain() outs(%y) {
  %a = kernel.map over() : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<() -> ()>] : !kernel.val<f32, []>, memref<f32>
}

// A product with a packed right operand, bf16 on the left, and an epilogue.
// CHECK-LABEL: kernel.func @contract(
// CHECK-SAME: micro = {k = 4, m = 6, n = 32}
// CHECK-SAME: pack = {lhs = none, rhs = block}
kernel.func @contract(%x: memref<?x?xbf16, strided<[?, 1]>>, %w: memref<?x?x?xf32, strided<[?, 32, 1]>>, %c: memref<?xf32, strided<[1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %M: index, %N: index, %K: index, %err: memref<i64>)
    domain(m = %M, n = %N, k = %K) outs(%y)
    attributes {schedule = #kernel.schedule<micro = {m = 6, n = 32, k = 4}, block = {k = 384, m = 0}, pack = {lhs = none, rhs = block}>} {
  // CHECK: kernel.contract over (m, n, k) by (k) : <f32, [m, n]> lhs {
  %a = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xbf16, strided<[?, 1]>> -> bf16
    %1 = arith.extf %0 : bf16 to f32
    kernel.yield %1 : f32
  // CHECK: } rhs {
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>] : memref<?x?x?xf32, strided<[?, 32, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %b = kernel.map over(m, n) : !kernel.val<f32, [m, n]> {
    %0 = kernel.use %a : !kernel.val<f32, [m, n]> -> f32
    %1 = kernel.read %c[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %b, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
}
