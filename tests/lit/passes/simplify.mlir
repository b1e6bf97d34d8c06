// RUN: dlc-opt --dlc-simplify %s | FileCheck %s
// Only what changes no bit: x * 1 and x - 0 go, x + 0.0 stays (it turns -0.0 into 0.0), widening and back goes, narrowing
// and back stays.
// CHECK-LABEL: func.func @numbers
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT: %[[SUM:.*]] = dlc.add(%arg0, %[[ZERO]], %[[ONE]])
// CHECK-NEXT: %[[HALF:.*]] = dlc.cast(%arg0) {dtype = f16}
// CHECK-NEXT: %[[BACK:.*]] = dlc.cast(%[[HALF]]) {dtype = f32}
// CHECK-NEXT: return %arg0, %arg0, %[[SUM]], %arg0, %[[BACK]]
func.func @numbers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %0 = dlc.mul(%x, %one) : (tensor<4xf32>, i64) -> tensor<4xf32>
  %1 = dlc.sub(%x, %zero, %one) : (tensor<4xf32>, f64, i64) -> tensor<4xf32>
  %2 = dlc.add(%x, %zero, %one) : (tensor<4xf32>, f64, i64) -> tensor<4xf32>
  %3 = dlc.cast(%x) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %4 = dlc.cast(%3) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  %5 = dlc.cast(%x) {dtype = f16} : (tensor<4xf32>) -> tensor<4xf16>
  %6 = dlc.cast(%5) {dtype = f32} : (tensor<4xf16>) -> tensor<4xf32>
  return %0, %1, %2, %4, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// A write through a view that is read through the same view, and one that covers everything, are the value itself; a view
// whose elements share addresses is not (the last write wins).
// CHECK-LABEL: func.func @windows
// CHECK-NOT: as_strided_scatter
// CHECK: return %arg1, %{{.*}}
// CHECK-LABEL: func.func @overlapping
// CHECK: dlc.as_strided_scatter
// CHECK: dlc.as_strided(
func.func @windows(%base: tensor<4x4xf32>, %v: tensor<2x4xf32>, %all: tensor<16xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) attributes {dlc.symbols = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %0 = dlc.as_strided_scatter(%base, %v, %c2, %c4, %c8, %c1, %c4) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 1>} : (tensor<4x4xf32>, tensor<2x4xf32>, index, index, index, index, index) -> tensor<4x4xf32>
  %1 = dlc.as_strided(%0, %c2, %c4, %c8, %c1, %c4) {operandSegmentSizes = array<i32: 1, 2, 2, 1>} : (tensor<4x4xf32>, index, index, index, index, index) -> tensor<2x4xf32>
  %2 = dlc.as_strided_scatter(%base, %all, %c16, %c1, %c0) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x4xf32>, tensor<16xf32>, index, index, index) -> tensor<4x4xf32>
  return %1, %2 : tensor<2x4xf32>, tensor<4x4xf32>
}
func.func @overlapping(%base: tensor<8xf32>, %v: tensor<3x3xf32>) -> tensor<3x3xf32> attributes {dlc.symbols = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = dlc.as_strided_scatter(%base, %v, %c3, %c3, %c1, %c1, %c0) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 1>} : (tensor<8xf32>, tensor<3x3xf32>, index, index, index, index, index) -> tensor<8xf32>
  %1 = dlc.as_strided(%0, %c3, %c3, %c1, %c1, %c0) {operandSegmentSizes = array<i32: 1, 2, 2, 1>} : (tensor<8xf32>, index, index, index, index, index) -> tensor<3x3xf32>
  return %1 : tensor<3x3xf32>
}
// The gradient of what was cut into parts is their cat; plus zero, since -0.0 + 0.0 is 0.0. Not if a part is missing.
// CHECK-LABEL: func.func @parts
// CHECK: %[[ZEROS:.*]] = dlc.full
// CHECK: %[[CAT:.*]] = dlc.cat(%arg1, %arg0, %arg2) {dim = 1 : i64}
// CHECK: dlc.add(%[[CAT]], %[[ZEROS]]
// CHECK-LABEL: func.func @missing
// CHECK: dlc.slice_scatter
// CHECK-NOT: dlc.cat
func.func @parts(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>, %c: tensor<4x1xf32>) -> tensor<4x6xf32> attributes {dlc.symbols = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = dlc.full(%c4, %c6, %zero) {dtype = f32, operandSegmentSizes = array<i32: 2, 1>} : (index, index, i64) -> tensor<4x6xf32>
  %1 = dlc.slice_scatter(%0, %a, %c3, %c5, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x6xf32>, tensor<4x2xf32>, index, index, index) -> tensor<4x6xf32>
  %2 = dlc.slice_scatter(%0, %b, %c0, %c3, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x6xf32>, tensor<4x3xf32>, index, index, index) -> tensor<4x6xf32>
  %3 = dlc.slice_scatter(%0, %c, %c5, %c6, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x6xf32>, tensor<4x1xf32>, index, index, index) -> tensor<4x6xf32>
  %4 = dlc.add(%1, %2, %one) : (tensor<4x6xf32>, tensor<4x6xf32>, i64) -> tensor<4x6xf32>
  %5 = dlc.add(%4, %3, %one) : (tensor<4x6xf32>, tensor<4x6xf32>, i64) -> tensor<4x6xf32>
  return %5 : tensor<4x6xf32>
}
func.func @missing(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x6xf32> attributes {dlc.symbols = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = dlc.full(%c4, %c6, %zero) {dtype = f32, operandSegmentSizes = array<i32: 2, 1>} : (index, index, i64) -> tensor<4x6xf32>
  %1 = dlc.slice_scatter(%0, %a, %c3, %c5, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x6xf32>, tensor<4x2xf32>, index, index, index) -> tensor<4x6xf32>
  %2 = dlc.slice_scatter(%0, %b, %c0, %c3, %c1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (tensor<4x6xf32>, tensor<4x3xf32>, index, index, index) -> tensor<4x6xf32>
  %3 = dlc.add(%1, %2, %one) : (tensor<4x6xf32>, tensor<4x6xf32>, i64) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
