// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// Views are strides: a transposed operand is read with swapped strides, a slice starts further on, a reshape of what the
// kernel computes itself only renames its loops, and a permuted result is written in place.
// CHECK-LABEL: func.func @main
// CHECK: dlc.launch @[[K:[a-z0-9_]+]](%arg0, %arg1) {{.*}}offsets = #[[OFFSETS:.*]], ops
// CHECK-NOT: dlc.launch
// CHECK: kernel.func @[[K]](
// CHECK-COUNT-1: kernel.map over
// CHECK-NOT: kernel.map
func.func @main(%x: tensor<6x4xf32>, %y: tensor<4x9xf32>) -> tensor<3x8xf32> attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %0 = dlc.transpose(%x) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = dlc.slice(%y, %c3, %c8, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<4x9xf32>, index, index, index) -> tensor<4x5xf32>
  %c6 = arith.constant 6 : index
  %c9 = arith.constant 9 : index
  %2 = dlc.slice(%y, %c3, %c9, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<4x9xf32>, index, index, index) -> tensor<4x6xf32>
  %3 = dlc.add(%0, %2, %one) : (tensor<4x6xf32>, tensor<4x6xf32>, i64) -> tensor<4x6xf32>
  %4 = dlc.view(%3, %c4, %c2, %c3) : (tensor<4x6xf32>, index, index, index) -> tensor<4x2x3xf32>
  %5 = dlc.exp(%4) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %6 = dlc.permute(%5) {dims = array<i64: 2, 0, 1>} : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %7 = dlc.view(%6, %c3, %c8) : (tensor<3x4x2xf32>, index, index) -> tensor<3x8xf32>
  return %7 : tensor<3x8xf32>
}
