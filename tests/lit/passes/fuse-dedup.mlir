// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// Two launches, one kernel: sizes and numbers are arguments.
// CHECK-LABEL: func.func @main
// CHECK: dlc.launch @[[K:[a-z0-9_]+]](%arg0, %arg2)
// CHECK: dlc.launch @[[K]](%arg1, %arg3)
// CHECK-COUNT-1: kernel.func
// CHECK-NOT: kernel.func
func.func @main(%x: tensor<32xf32>, %y: tensor<100xf32>, %a: f64, %b: f64) -> (tensor<32xf32>, tensor<100xf32>) attributes {dlc.symbols = array<i64>} {
  %0 = dlc.mul(%x, %a) : (tensor<32xf32>, f64) -> tensor<32xf32>
  %1 = dlc.mul(%y, %b) : (tensor<100xf32>, f64) -> tensor<100xf32>
  %2 = dlc.tanh(%0) : (tensor<32xf32>) -> tensor<32xf32>
  %3 = dlc.tanh(%1) : (tensor<100xf32>) -> tensor<100xf32>
  return %2, %3 : tensor<32xf32>, tensor<100xf32>
}
