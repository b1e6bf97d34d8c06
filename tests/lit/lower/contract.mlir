// A product with a fused epilogue: tasks, tiles of 6 x 16 sums in registers, the later stage row by row on them.
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" | FileCheck %s --check-prefix=SCHEDULE
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" -kernel-to-loops | FileCheck %s
// RUN: dlc-opt %s -kernel-schedule="vector-bits=256" -kernel-to-loops -lower-to-llvm | FileCheck %s --check-prefix=LLVM

// A partial schedule is completed.
// SCHEDULE: block = {k = 0, m = {{.*}}, n = {{.*}}}, micro = {k = 4, m = 6, n = 16}, pack = {lhs = none, rhs = none}, vec = {n = 8}

// CHECK-LABEL: func.func @linear_relu
// CHECK: llvm.alloca {{.*}} x f32
// CHECK: scf.for
// The loop over k carries twelve vectors of sums and where the operands are; four products a trip.
// CHECK: scf.for {{.*}} step %c4{{.*}} iter_args
// CHECK-COUNT-48: math.fma {{.*}} : vector<8xf32>
// CHECK: scf.yield
// No second loop for the rest: 64 is a multiple of four.
// CHECK-COUNT-12: llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// The epilogue of whole panels alone, as 48 columns are three of them.
// CHECK: scf.for
// CHECK-COUNT-2: arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT: arith.addf
// LLVM-LABEL: llvm.func @linear_relu
// LLVM-NOT: scf.
kernel.func @linear_relu(%x: memref<?x?xf32, strided<[?, 1]>>, %w: memref<?x?x?xf32, strided<[1024, 16, 1]>>,
    %b: memref<?xf32, strided<[1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %M: index, %err: memref<i64>)
    domain(m = %M, n = 48, k = 64) outs(%y) attributes {schedule = #kernel.schedule<micro = {m = 6}>} {
  %s = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d1 floordiv 16, d2, d1 mod 16)>] : memref<?x?x?xf32, strided<[1024, 16, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(m, n) : !kernel.val<f32, [m, n]> {
    %0 = kernel.use %s : !kernel.val<f32, [m, n]> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    %3 = kernel.prim "relu"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
}
