// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// A mask made of indices needs no memory: both of its users compute it from their loops.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor<8x8xi1>
// CHECK: kernel.func
// CHECK: kernel.index
// CHECK: kernel.prim "ge"
func.func @main(%x: tensor<4x8x8xf32>, %y: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8x8xf32>, tensor<8x8xf32>) attributes {dlc.symbols = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %0 = dlc.arange(%c0, %c8, %c1) : (index, index, index) -> tensor<8xi64>
  %1 = dlc.unsqueeze(%0) {dim = 1 : i64} : (tensor<8xi64>) -> tensor<8x1xi64>
  %2 = dlc.ge(%1, %0) : (tensor<8x1xi64>, tensor<8xi64>) -> tensor<8x8xi1>
  %3 = dlc.where(%2, %x, %zero) : (tensor<8x8xi1>, tensor<4x8x8xf32>, f64) -> tensor<4x8x8xf32>
  %4 = dlc.mm(%y, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = dlc.where(%2, %4, %zero) : (tensor<8x8xi1>, tensor<8x8xf32>, f64) -> tensor<8x8xf32>
  return %3, %5 : tensor<4x8x8xf32>, tensor<8x8xf32>
}
