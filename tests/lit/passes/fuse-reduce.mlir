// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// Rows and columns are different domains: the row statistics are one kernel, the column sum another.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: dlc.launch
// CHECK-NOT: dlc.launch
// CHECK: kernel.func @{{.*}}amax
// CHECK: kernel.reduce over (p0, r1) by (r1) combine [max]
// CHECK: kernel.reduce over (p0, r1) by (r1) combine [add]
// CHECK: kernel.func @{{.*}}_sum(
// CHECK: kernel.reduce over (p0, r1) by (r1) combine [add]
func.func @main(%x: tensor<32x24xf32>) -> (tensor<32x24xf32>, tensor<24xf32>) attributes {dlc.symbols = array<i64>} {
  %0 = dlc.softmax(%x) {dim = 1 : i64} : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %1 = dlc.sum(%x) {dim = array<i64: 0>, keepdim = false} : (tensor<32x24xf32>) -> tensor<24xf32>
  return %0, %1 : tensor<32x24xf32>, tensor<24xf32>
}
