// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// The three parts of a joint projection: each kernel reads its third of the product and adds its third of the bias.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = dlc.mm
// CHECK: dlc.launch @[[K:[a-z0-9_]+]](%[[P]], %arg2)
// CHECK: dlc.launch @[[K]](%[[P]], %arg2)
// CHECK-NOT: dlc.launch
func.func @main(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %0 = dlc.mm(%x, %w) : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %1 = dlc.add(%0, %b, %one) : (tensor<6x8xf32>, tensor<8xf32>, i64) -> tensor<6x8xf32>
  %2 = dlc.view(%1, %c6, %c2, %c4) : (tensor<6x8xf32>, index, index, index) -> tensor<6x2x4xf32>
  %3 = dlc.select(%2, %c0) {dim = 1 : i64} : (tensor<6x2x4xf32>, index) -> tensor<6x4xf32>
  %4 = dlc.select(%2, %c1) {dim = 1 : i64} : (tensor<6x2x4xf32>, index) -> tensor<6x4xf32>
  return %3, %4 : tensor<6x4xf32>, tensor<6x4xf32>
}
