// RUN: dlc-run %s --compare --steps --quiet | FileCheck %s
// One kernel each way: the row stays in the kernel between its two reductions.
func.func @main(%x: tensor<6x33xf32>, %g: tensor<6x33xf32>) -> (tensor<6x33xf32>, tensor<6x33xf32>, tensor<6x33xf32>) attributes {dlc.symbols = array<i64>} {
  %0 = dlc.softmax(%x) {dim = -1 : i64} : (tensor<6x33xf32>) -> tensor<6x33xf32>
  %1 = dlc.softmax_backward(%g, %0) {dim = -1 : i64} : (tensor<6x33xf32>, tensor<6x33xf32>) -> tensor<6x33xf32>
  %2 = dlc.log_softmax(%x) {dim = 1 : i64} : (tensor<6x33xf32>) -> tensor<6x33xf32>
  return %0, %1, %2 : tensor<6x33xf32>, tensor<6x33xf32>, tensor<6x33xf32>
}
// CHECK: 1 kernels (1 distinct), 0 library calls, 0 other steps, 0 copies
// CHECK: compare 0: equal
// CHECK: compare 1: equal
// CHECK: compare 2: equal
