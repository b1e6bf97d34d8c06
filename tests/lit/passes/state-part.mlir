// RUN: dlc-opt --dlc-state-part %s | FileCheck %s
// What follows from state arguments alone, and is dear or read by a product, becomes a function of its own.

// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x32xf32> {dlc.derived = @joined_state, dlc.from = array<i64: 1, 2>}
// CHECK-NOT: dlc.cat
// CHECK: dlc.mm(%{{.*}}, %[[W]])
// CHECK-LABEL: func.func @joined_state(
// CHECK: %[[R:.*]] = dlc.cat
// CHECK-NEXT: return %[[R]]
func.func @joined(%x: tensor<4x16xf32>, %a: tensor<16x16xf32> {dlc.state}, %b: tensor<16x16xf32> {dlc.state}) -> tensor<4x32xf32> {
  %w = dlc.cat(%a, %b) {dim = 1 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x32xf32>
  %y = dlc.mm(%x, %w) : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// A view costs nothing, and one cheap op on a small tensor less than a kernel.
// CHECK-LABEL: func.func @cheap
// CHECK-NOT: dlc.derived
// CHECK: dlc.transpose
// CHECK: dlc.exp
func.func @cheap(%x: tensor<4x16xf32>, %a: tensor<8x16xf32> {dlc.state}, %s: tensor<8xf32> {dlc.state}) -> tensor<4x8xf32> {
  %t = dlc.transpose(%a) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %y = dlc.mm(%x, %t) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %e = dlc.exp(%s) : (tensor<8xf32>) -> tensor<8xf32>
  %z = dlc.mul(%y, %e) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// The same ops over arguments of the call stay.
// CHECK-LABEL: func.func @call
// CHECK-NOT: dlc.derived
// CHECK: dlc.cat
func.func @call(%x: tensor<4x16xf32>, %a: tensor<16x16xf32>, %b: tensor<16x16xf32> {dlc.state}) -> tensor<4x32xf32> {
  %w = dlc.cat(%a, %b) {dim = 1 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x32xf32>
  %y = dlc.mm(%x, %w) : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// What follows from another derived value takes it as an operand; the scaled weights are read by a product only.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: {dlc.derived = @chain_state, dlc.from = array<i64: 1, 2>}
// CHECK-SAME: {dlc.derived = @chain_state_0, dlc.from = array<i64: -1, 3>}
// CHECK: dlc.mm
// CHECK: dlc.mm
func.func @chain(%x: tensor<4x16xf32>, %a: tensor<16x16xf32> {dlc.state}, %b: tensor<16x16xf32> {dlc.state}, %s: tensor<32xf32> {dlc.state}) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %w = dlc.cat(%a, %b) {dim = 1 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x32xf32>
  %v = dlc.mul(%w, %s) : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %y = dlc.mm(%x, %w) : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  %z = dlc.mm(%x, %v) : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  return %y, %z : tensor<4x32xf32>, tensor<4x32xf32>
}
