// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// exp feeds the sum both directly and through a matrix product: one kernel of exp and add would wait for itself.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = dlc.launch @k{{[0-9]+}}_exp(
// CHECK: %[[M:.*]] = dlc.mm(%[[E]], %{{.*}})
// CHECK: dlc.launch @k{{[0-9]+}}_add(
// CHECK-NOT: dlc.launch
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %0 = dlc.exp(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = dlc.mm(%0, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = dlc.add(%0, %1, %one) : (tensor<8x8xf32>, tensor<8x8xf32>, i64) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
