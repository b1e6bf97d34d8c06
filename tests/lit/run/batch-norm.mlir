// RUN: dlc-run %s --compare --steps --quiet | FileCheck %s
func.func @main(%x: tensor<4x6x5x5xf32>, %rm: tensor<6xf32>, %rv: tensor<6xf32>, %w: tensor<6xf32>, %b: tensor<6xf32>, %g: tensor<4x6x5x5xf32>)
    -> (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>) attributes {dlc.symbols = array<i64>} {
  %m = arith.constant 0.1 : f64
  %0:5 = dlc.batch_norm(%x, %rm, %rv, %w, %b, %m) {training = true, eps = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 1, 1>}
    : (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, f64) -> (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  %1:3 = dlc.batch_norm_backward(%g, %x, %0#1, %0#2, %w) {training = true, needs_weight = true, needs_bias = true}
    : (tensor<4x6x5x5xf32>, tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>)
  return %0#0, %0#3, %0#4, %1#0, %1#1, %1#2 : tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>
}
// CHECK: 0 library calls, 0 other steps
// CHECK-COUNT-6: equal
