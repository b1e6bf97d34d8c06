// Every family of the `dlc` dialect parses, verifies by its meta functions, prints and parses again.
// RUN: dlc-opt %s | dlc-opt | FileCheck %s

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%a: tensor<3x1xi32>, %b: tensor<4xf32>, %m: tensor<3x4xi1>) -> tensor<3x4xf32> {
  %one = arith.constant 1 : i64
  %half = arith.constant 5.000000e-01 : f64
  // CHECK: dlc.add(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x1xi32>, tensor<4xf32>, i64) -> tensor<3x4xf32>
  %0 = dlc.add(%a, %b, %one) : (tensor<3x1xi32>, tensor<4xf32>, i64) -> tensor<3x4xf32>
  // A number in the place of a tensor promotes by its category only.
  // CHECK: dlc.mul(%{{.*}}, %{{.*}}) : (tensor<3x1xi32>, f64) -> tensor<3x1xf32>
  %1 = dlc.mul(%a, %half) : (tensor<3x1xi32>, f64) -> tensor<3x1xf32>
  // CHECK: dlc.div(%{{.*}}, %{{.*}}) {rounding_mode = "floor"} : (tensor<3x1xi32>, i64) -> tensor<3x1xi32>
  %2 = dlc.div(%a, %one) {rounding_mode = "floor"} : (tensor<3x1xi32>, i64) -> tensor<3x1xi32>
  // CHECK: dlc.clamp(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<3x1xf32>, f64) -> tensor<3x1xf32>
  %3 = dlc.clamp(%1, %half) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<3x1xf32>, f64) -> tensor<3x1xf32>
  // CHECK: dlc.where(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %4 = dlc.where(%m, %0, %3) : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  // CHECK: dlc.cast(%{{.*}}) {dtype = ui8} : (tensor<3x1xi32>) -> tensor<3x1xui8>
  %5 = dlc.cast(%2) {dtype = ui8} : (tensor<3x1xi32>) -> tensor<3x1xui8>
  return %4 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @symbols
func.func @symbols(%x: tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, %n: index {dlc.symbol = 0 : i64})
    -> tensor<?xf32, affine_map<()[s0] -> (s0 * 4)>> attributes {dlc.symbols = [8]} {
  %n2 = arith.constant 1 : i64
  // CHECK: dlc.sum(%{{.*}}) {dim = array<i64: 1>, keepdim = true} : (tensor<?x4xf32, [[X:.*]]>) -> tensor<?x1xf32, [[S:.*]]>
  %0 = dlc.sum(%x) {dim = array<i64: 1>, keepdim = true} : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>
  %1 = dlc.sub(%x, %0, %n2) : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>, i64) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %m = affine.apply affine_map<()[s0] -> (s0 * 4)>()[%n]
  // CHECK: dlc.view(%{{.*}}, %{{.*}}) : (tensor<?x4xf32, [[X]]>, index) -> tensor<?xf32, {{.*}}>
  %2 = dlc.view(%1, %m) : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, index) -> tensor<?xf32, affine_map<()[s0] -> (s0 * 4)>>
  return %2 : tensor<?xf32, affine_map<()[s0] -> (s0 * 4)>>
}

// CHECK-LABEL: func.func @index_and_mutation
func.func @index_and_mutation(%x: tensor<2x3x4xf32>, %i: tensor<5xi64>, %w: tensor<3xf32>, %seed: i64) -> tensor<2x5x4xf32> {
  %none = dlc.none : none
  // CHECK: dlc.index(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<2x3x4xf32>, none, tensor<5xi64>) -> tensor<2x5x4xf32>
  %0 = dlc.index(%x, %none, %i) : (tensor<2x3x4xf32>, none, tensor<5xi64>) -> tensor<2x5x4xf32>
  %mom = arith.constant 1.000000e-01 : f64
  // The running statistics come back as further results.
  // CHECK: dlc.batch_norm
  // CHECK-SAME: -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %1:5 = dlc.batch_norm(%x, %w, %w, %mom) {eps = 1.000000e-05 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1>,
      resultSegmentSizes = array<i32: 1, 1, 1, 1, 1>, training = true}
      : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, f64) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %two = arith.constant 2 : index
  // A random op is a function of the seed and the first block of its stream.
  // CHECK: dlc.rand(%{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2>} : (index, i64, i64) -> tensor<2xf32>
  %2 = dlc.rand(%two, %seed, %seed) {operandSegmentSizes = array<i32: 1, 2>} : (index, i64, i64) -> tensor<2xf32>
  return %0 : tensor<2x5x4xf32>
}

// CHECK-LABEL: func.func @network
func.func @network(%x: tensor<8x16xf32>, %w: tensor<4x16xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  // CHECK: dlc.transpose(%{{.*}}) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %0 = dlc.transpose(%w) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  // CHECK: dlc.mm(%{{.*}}, %{{.*}}) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = dlc.mm(%x, %0) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  // CHECK: dlc.log_softmax(%{{.*}}) {dim = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = dlc.log_softmax(%1) {dim = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: dlc.nll_loss(%{{.*}}, %{{.*}}) {ignore_index = -100 : i64, reduction = "mean"} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  %3:2 = dlc.nll_loss(%2, %t) {ignore_index = -100 : i64, reduction = "mean"} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %3#0 : tensor<f32>
}
