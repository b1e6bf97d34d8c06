// RUN: dlc-opt --phase-simplified %s | FileCheck %s
// A region from the first convolution to the mean has channels-last memory; the first one reads planes. What the
// function returns is row-major.
// CHECK-LABEL: func.func @main
// CHECK: dlc.conv2d_pack(%arg1) {groups = 1 : i64, planar = true}
// CHECK: dlc.conv2d_packed(%arg0, {{.*}}dlc.channels_last = array<i64: 0>{{.*}}planar = true
// CHECK: dlc.max_pool2d_values({{.*}}dlc.channels_last = array<i64: 0>
// CHECK: dlc.conv2d_pack(%arg2) {groups = 1 : i64, planar = false}
// CHECK: dlc.conv2d_packed({{.*}}dlc.channels_last = array<i64: 0>{{.*}}planar = false
// CHECK: dlc.sigmoid({{.*}}) {dlc.channels_last = array<i64: 0>}
// CHECK: dlc.mean({{.*}}) {dim = array<i64: 2, 3>, keepdim = true}
// CHECK: dlc.exp({{.*}}) :
func.func @main(%x: tensor<1x3x64x64xf32>, %w: tensor<16x3x3x3xf32>, %v: tensor<16x16x1x1xf32>) -> (tensor<1x16x1x1xf32>, tensor<1x16x32x32xf32>) attributes {dlc.symbols = array<i64>} {
  %c1 = arith.constant 1 : index
  %0 = dlc.conv2d(%x, %w) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x3x64x64xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x64x64xf32>
  %1:2 = dlc.max_pool2d(%0) {ceil_mode = false, dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>} : (tensor<1x16x64x64xf32>) -> (tensor<1x16x32x32xf32>, tensor<1x16x32x32xi64>)
  %2 = dlc.conv2d(%1#0, %v) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x16x32x32xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x32x32xf32>
  %3 = dlc.sigmoid(%2) : (tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  %4 = dlc.adaptive_avg_pool2d(%3, %c1, %c1) : (tensor<1x16x32x32xf32>, index, index) -> tensor<1x16x1x1xf32>
  %5 = dlc.exp(%3) : (tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  return %4, %5 : tensor<1x16x1x1xf32>, tensor<1x16x32x32xf32>
}
