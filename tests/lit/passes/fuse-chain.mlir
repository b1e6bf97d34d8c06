// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// RUN: dlc-opt --phase-simplified --dlc-fuse=no-fuse %s | FileCheck %s --check-prefix=NONE
// RUN: dlc-opt --phase-simplified --dlc-fuse=fuel=1 %s | FileCheck %s --check-prefix=FUEL

// A chain with a broadcast bias is one kernel; without fusion one an op; with one unit of fuel two ops are joined.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: dlc.launch
// CHECK-NOT: dlc.launch
// CHECK: kernel.func @k0_add_gelu_mul(
// CHECK: kernel.map over (p0, p1)
// CHECK: kernel.prim "gelu_erf"
// NONE-COUNT-3: dlc.launch
// NONE-NOT: dlc.launch
// FUEL-COUNT-2: dlc.launch
// FUEL-NOT: dlc.launch
func.func @main(%x: tensor<8x16xf32>, %b: tensor<16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %0 = dlc.add(%x, %b, %one) : (tensor<8x16xf32>, tensor<16xf32>, i64) -> tensor<8x16xf32>
  %1 = dlc.gelu(%0) {approximate = "none"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = dlc.mul(%1, %y) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
