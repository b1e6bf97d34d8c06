// The loops of a kernel: main loop and masked tail, one body for long chains, stages of a row in as few passes as the
// reductions allow, a value kept in the output's memory.
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" -kernel-to-loops | FileCheck %s
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" -kernel-to-loops -lower-to-llvm | FileCheck %s --check-prefix=LLVM

// CHECK-LABEL: func.func @double(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
// The range is the last two integers; the main loop takes two vectors a trip.
// CHECK: %[[AT:.*]] = llvm.getelementptr %arg1[1]
// CHECK: %[[BEGIN:.*]] = llvm.load %[[AT]] invariant
// CHECK: %[[AT:.*]] = llvm.getelementptr %arg1[2]
// CHECK: %[[END:.*]] = llvm.load %[[AT]] invariant
// CHECK: arith.subi %[[END]], %[[BEGIN]] : i64
// CHECK: scf.for {{.*}} step %c16
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<8xf32>
// CHECK-COUNT-2: llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK: scf.for {{.*}} step %c8
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// CHECK-NOT: scf.for
// LLVM-LABEL: llvm.func @double
// LLVM-NOT: scf.
// LLVM: llvm.cond_br
kernel.func @double(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>)
    domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = arith.addf %0, %0 : f32
    kernel.yield %1 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// CHECK-LABEL: func.func @softmax
// Rows are the parallel range.
// CHECK: scf.for %[[R:.*]] = {{.*}} step %c1
// First pass, the maximum, in four accumulators.
// CHECK: scf.for {{.*}} step %c32{{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK: scf.for {{.*}} step %c8
// CHECK: vector.shuffle
// Second pass: exp, kept in the output row, and its sum. One copy of the exponential for full vectors, one for the tail.
// CHECK: scf.for
// CHECK: math.fma
// CHECK: llvm.store {{.*}} : vector<8xf32>
// CHECK: arith.addf
// CHECK: scf.for
// Third pass: no exponential, the division reads what was kept.
// CHECK: arith.divf {{.*}} : vector<8xf32>
// CHECK-NOT: math.fma
// CHECK: return
kernel.func @softmax(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>,
                     %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
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

// The scale of a row is computed outside the loop over the row.
// CHECK-LABEL: func.func @rowscale
// CHECK: scf.for
// CHECK: math.sqrt {{.*}} : f32
// CHECK: scf.for
// CHECK-NOT: math.sqrt
// CHECK: return
kernel.func @rowscale(%x: memref<?x?xf32, strided<[?, 1]>>, %s: memref<?xf32, strided<[1]>>,
                      %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.read %s[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = kernel.prim "sqrt"(%1) : (f32) -> f32
    %3 = arith.mulf %0, %2 : f32
    kernel.yield %3 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
}
