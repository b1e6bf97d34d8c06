// RUN: dlc-run %s --compare --steps --quiet | FileCheck %s
func.func @main(%x: tensor<12x10xf32>, %t: tensor<12xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<12x10xf32>) attributes {dlc.symbols = array<i64>} {
  %0 = dlc.log_softmax(%x) {dim = 1 : i64} : (tensor<12x10xf32>) -> tensor<12x10xf32>
  %1:2 = dlc.nll_loss(%0, %t) {ignore_index = -100 : i64, reduction = "mean"} : (tensor<12x10xf32>, tensor<12xi64>) -> (tensor<f32>, tensor<f32>)
  %n = arith.constant 12 : index
  %c = arith.constant 10 : index
  %2 = dlc.nll_loss_backward(%g, %n, %c, %t, %1#1) {dtype = f32, ignore_index = -100 : i64, reduction = "mean", operandSegmentSizes = array<i32: 1, 2, 1, 0, 1>}
    : (tensor<f32>, index, index, tensor<12xi64>, tensor<f32>) -> tensor<12x10xf32>
  %3 = dlc.log_softmax_backward(%2, %0) {dim = 1 : i64} : (tensor<12x10xf32>, tensor<12x10xf32>) -> tensor<12x10xf32>
  return %1#0, %3 : tensor<f32>, tensor<12x10xf32>
}
// CHECK: 0 library calls, 0 other steps
// CHECK: compare 0: equal
// CHECK: compare 1: equal
