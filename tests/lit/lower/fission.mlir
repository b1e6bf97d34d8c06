// RUN: dlc-opt %s --kernel-schedule=vector-bits=256 --kernel-to-loops | FileCheck %s

// Three long functions: two go to the stack, each from a loop over a tile, and the third is computed with the rest.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-2: llvm.alloca
// CHECK: scf.for {{.*}} step %c512
// CHECK: scf.for {{.*}} step %c8
// CHECK: llvm.store
// CHECK: scf.for {{.*}} step %c8
// CHECK: llvm.load
// CHECK: llvm.store
// CHECK: scf.for {{.*}} step %c8
// CHECK-NOT: scf.for
kernel.func @chain(%n: index, %x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %e: memref<i64>)
    domain(i = %n) outs(%y) {
  %0 = kernel.map over (i) : !kernel.val<f32, [i]> {
    %1 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = kernel.prim "exp"(%1) : (f32) -> f32
    %3 = kernel.prim "log1p"(%2) : (f32) -> f32
    %4 = kernel.prim "tanh"(%3) : (f32) -> f32
    kernel.yield %4 : f32
  }
  kernel.write %0, %y[affine_map<(d0) -> (d0)>] : <f32, [i]>, memref<?xf32, strided<[1]>>
}

// Two of them stay in one loop.
// CHECK-LABEL: func.func @short
// CHECK-NOT: llvm.alloca
kernel.func @short(%n: index, %x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %e: memref<i64>)
    domain(i = %n) outs(%y) {
  %0 = kernel.map over (i) : !kernel.val<f32, [i]> {
    %1 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = kernel.prim "exp"(%1) : (f32) -> f32
    %3 = kernel.prim "log1p"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  kernel.write %0, %y[affine_map<(d0) -> (d0)>] : <f32, [i]>, memref<?xf32, strided<[1]>>
}
