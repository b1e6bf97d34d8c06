// RUN: dlc-run %s --compare --steps --quiet | FileCheck %s
// Forward is one kernel with the residual; backward is one over rows and one over columns.
func.func @main(%x: tensor<10x48xf32>, %r: tensor<10x48xf32>, %w: tensor<48xf32>, %b: tensor<48xf32>, %g: tensor<10x48xf32>)
    -> (tensor<10x48xf32>, tensor<10x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<10x48xf32>) attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %h = dlc.add(%x, %r, %one) : (tensor<10x48xf32>, tensor<10x48xf32>, i64) -> tensor<10x48xf32>
  %0:3 = dlc.layer_norm(%h, %w, %b) {normalized_shape = array<i64: 48>, eps = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 1>}
    : (tensor<10x48xf32>, tensor<48xf32>, tensor<48xf32>) -> (tensor<10x48xf32>, tensor<10x1xf32>, tensor<10x1xf32>)
  %1:3 = dlc.layer_norm_backward(%g, %h, %0#1, %0#2, %w) {normalized_shape = array<i64: 48>, needs_weight = true, needs_bias = true}
    : (tensor<10x48xf32>, tensor<10x48xf32>, tensor<10x1xf32>, tensor<10x1xf32>, tensor<48xf32>) -> (tensor<10x48xf32>, tensor<48xf32>, tensor<48xf32>)
  return %0#0, %1#0, %1#1, %1#2, %h : tensor<10x48xf32>, tensor<10x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<10x48xf32>
}
// CHECK: 2 kernels (2 distinct), 0 library calls, 0 other steps
// CHECK: compare 0: equal
// CHECK: compare 1: equal
// CHECK: compare 2: equal
// CHECK: compare 3: equal
