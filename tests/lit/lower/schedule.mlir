// The static rule: order, vectorised dim, width, unrolling and parallel dims.
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" | FileCheck %s
// RUN: dlc-opt %s -kernel-schedule="vector-bits=512" | FileCheck %s --check-prefix=WIDE

// A map runs along the dim whose accesses are neighbours; all its dims are parallel.
// CHECK-LABEL: @map
// CHECK-SAME: #kernel.schedule<order = [r, c], par = [r, c], tail = auto, unroll = 2, vec = {c = 8}>
// WIDE-LABEL: @map
// WIDE-SAME: vec = {c = 16}
kernel.func @map(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}

// Column-major data: the other dim goes inside.
// CHECK-LABEL: @columns
// CHECK-SAME: #kernel.schedule<order = [c, r], par = [c, r], tail = auto, unroll = 2, vec = {r = 8}>
kernel.func @columns(%x: memref<?x?xf32, strided<[1, ?]>>, %y: memref<?x?xf32, strided<[1, ?]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[1, ?]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[1, ?]>>
}

// A row sum splits rows; a column sum walks down a tile of columns and splits columns.
// CHECK-LABEL: @rows
// CHECK-SAME: #kernel.schedule<order = [r, c], par = [r], tail = auto, unroll = 4, vec = {c = 4}>
kernel.func @rows(%x: memref<?x?xf64, strided<[?, 1]>>, %y: memref<?xf64, strided<[1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %a = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f64, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf64, strided<[?, 1]>> -> f64
    kernel.yield %0 : f64
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f64, [r]>, memref<?xf64, strided<[1]>>
}

// CHECK-LABEL: @columnsum
// CHECK-SAME: #kernel.schedule<order = [c, r], par = [c], tail = auto, unroll = 8, vec = {c = 32}>
kernel.func @columnsum(%x: memref<?x?xi8, strided<[?, 1]>>, %y: memref<?xi8, strided<[1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %a = kernel.reduce over(r, c) by(r) combine [maxu] : !kernel.val<i8, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xi8, strided<[?, 1]>> -> i8
    kernel.yield %0 : i8
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<i8, [c]>, memref<?xi8, strided<[1]>>
}

// What calls the C library for each element is scalar code; given fields stay.
// CHECK-LABEL: @given
// CHECK-SAME: #kernel.schedule<grain = 100, order = [i], par = [i], tail = mask, unroll = 2, vec = {i = 1}>
kernel.func @given(%x: memref<?xf64, strided<[1]>>, %y: memref<?xf64, strided<[1]>>, %n: index, %err: memref<i64>)
    domain(i = %n) outs(%y) attributes {schedule = #kernel.schedule<tail = mask, grain = 100>} {
  %a = kernel.map over(i) : !kernel.val<f64, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf64, strided<[1]>> -> f64
    %1 = kernel.prim "exp"(%0) : (f64) -> f64
    kernel.yield %1 : f64
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f64, [i]>, memref<?xf64, strided<[1]>>
}

// A transposition: the dim along which the input's elements are neighbours goes inside the vectorised loop.
// CHECK-LABEL: @transpose
// CHECK-SAME: #kernel.schedule<order = [b, c, r], par = [b], tail = auto, unroll = 1, vec = {c = 8}>
kernel.func @transpose(%x: memref<?x?x?xf32, strided<[?, 1, ?]>>, %y: memref<?x?x?xf32, strided<[?, ?, 1]>>,
                       %B: index, %R: index, %C: index, %err: memref<i64>) domain(b = %B, r = %R, c = %C) outs(%y) {
  %a = kernel.map over(b, r, c) : !kernel.val<f32, [b, r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d1, d2)>] : memref<?x?x?xf32, strided<[?, 1, ?]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1, d2) -> (d0, d1, d2)>] : !kernel.val<f32, [b, r, c]>, memref<?x?x?xf32, strided<[?, ?, 1]>>
}
