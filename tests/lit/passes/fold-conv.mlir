// RUN: dlc-opt --dlc-fold-conv %s | FileCheck %s
// A normalisation by running statistics becomes a scale and a shift; a sum and an activation follow in the same op.
// CHECK-LABEL: func.func @inference
// CHECK: %[[V:.*]] = dlc.add(%arg3, {{.*}}) : (tensor<16xf32>, f64, i64)
// CHECK: %[[R:.*]] = dlc.rsqrt(%[[V]])
// CHECK: %[[SCALE:.*]] = dlc.mul(%[[R]], %arg4)
// CHECK: %[[M:.*]] = dlc.mul(%arg2, %[[SCALE]])
// CHECK: %[[SHIFT:.*]] = dlc.sub(%arg5, %[[M]]
// CHECK: %[[W:.*]] = dlc.conv2d_pack(%arg1)
// CHECK: %[[Y:.*]] = dlc.conv2d_packed(%arg0, %[[W]], %[[SCALE]], %[[SHIFT]], %arg6) {activation = "relu"
// CHECK-NOT: dlc.batch_norm
// CHECK: return %[[Y]], %arg2
func.func @inference(%x: tensor<1x3x32x32xf32>, %w: tensor<16x3x3x3xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>, %r: tensor<1x16x32x32xf32>) -> (tensor<1x16x32x32xf32>, tensor<16xf32>) attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %mom = arith.constant 1.000000e-01 : f64
  %0 = dlc.conv2d(%x, %w) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x32x32xf32>
  %1:5 = dlc.batch_norm(%0, %m, %v, %g, %b, %mom) {eps = 1.000000e-05 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 1, 1>, training = false} : (tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, f64) -> (tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
  %2 = dlc.add(%1#0, %r, %one) : (tensor<1x16x32x32xf32>, tensor<1x16x32x32xf32>, i64) -> tensor<1x16x32x32xf32>
  %3 = dlc.relu(%2) : (tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  return %3, %1#3 : tensor<1x16x32x32xf32>, tensor<16xf32>
}

// With statistics of the batch, the convolution and the normalisation stay.
// CHECK-LABEL: func.func @training
// CHECK: dlc.conv2d(
// CHECK: dlc.batch_norm
func.func @training(%x: tensor<1x3x32x32xf32>, %w: tensor<16x3x3x3xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>) -> (tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>) attributes {dlc.symbols = array<i64>} {
  %mom = arith.constant 1.000000e-01 : f64
  %0 = dlc.conv2d(%x, %w) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x32x32xf32>
  %1:5 = dlc.batch_norm(%0, %m, %v, %mom) {eps = 1.000000e-05 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 1, 1>, training = true} : (tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>, f64) -> (tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
  return %1#0, %1#3, %1#4 : tensor<1x16x32x32xf32>, tensor<16xf32>, tensor<16xf32>
}

// Few pixels and a weight that is no parameter: packing it in each call would cost more than it gains.
// CHECK-LABEL: func.func @small
// CHECK: dlc.conv2d(
// CHECK-LABEL: func.func @parameter
// CHECK: dlc.conv2d_packed(
func.func @small(%x: tensor<1x64x7x7xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x7x7xf32> attributes {dlc.symbols = array<i64>} {
  %0 = dlc.conv2d(%x, %w) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x7x7xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x7x7xf32>
  %1 = dlc.relu(%0) : (tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %1 : tensor<1x64x7x7xf32>
}
func.func @parameter(%x: tensor<1x64x7x7xf32>, %w: tensor<64x64x3x3xf32> {dlc.state}) -> tensor<1x64x7x7xf32> attributes {dlc.symbols = array<i64>} {
  %0 = dlc.conv2d(%x, %w) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x64x7x7xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x7x7xf32>
  %1 = dlc.relu(%0) : (tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32>
  return %1 : tensor<1x64x7x7xf32>
}

// The gradient for the input is a convolution with the flipped weight.
// CHECK-LABEL: func.func @gradient
// CHECK: %[[T:.*]] = dlc.transpose(%arg1)
// CHECK: %[[F:.*]] = dlc.flip(%[[T]]) {dims = array<i64: 2, 3>}
// CHECK: %[[W:.*]] = dlc.conv2d_pack(%[[F]])
// CHECK: dlc.conv2d_packed(%arg0, %[[W]]) {{.*}}padding = array<i64: 1, 2>
func.func @gradient(%g: tensor<2x16x30x28xf32>, %w: tensor<16x3x3x3xf32>) -> tensor<2x3x30x30xf32> attributes {dlc.symbols = array<i64>} {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c30 = arith.constant 30 : index
  %0 = dlc.conv2d_backward_input(%g, %w, %c2, %c3, %c30, %c30) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x30x28xf32>, tensor<16x3x3x3xf32>, index, index, index, index) -> tensor<2x3x30x30xf32>
  return %0 : tensor<2x3x30x30xf32>
}
