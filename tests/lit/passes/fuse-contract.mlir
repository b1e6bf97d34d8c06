// RUN: dlc-opt --phase-simplified --dlc-fuse='contract=1 vector-bits=256' --split-input-file %s | FileCheck %s
// RUN: dlc-opt --phase-simplified --dlc-fuse='contract=0' --split-input-file %s | FileCheck %s --check-prefix=LIBRARY

// Bias, activation and residual are the product's epilogue; the weight is packed by a function of its own.
// CHECK-LABEL: func.func @main
// CHECK-SAME: {dlc.derived = @main_state, dlc.from = array<i64: 1>}
// CHECK-COUNT-1: dlc.launch
// CHECK-NOT: dlc.launch
// CHECK-LABEL: func.func @main_state(
// CHECK: dlc.launch @main_state_pack
// CHECK-SAME: (tensor<40x24xf32>) -> tensor<2x24x24xf32>
// CHECK: kernel.func @main_state_pack
// CHECK: kernel.read {{.*}} bound pad [1]
// CHECK: kernel.func @{{.*}}mm_add_relu_add
// CHECK: kernel.contract over (p0, p1, r2) by (r2) : <f32, [p0, p1]>
// CHECK: } rhs {
// CHECK-NEXT: kernel.read
// CHECK: kernel.map over (p0, p1)
// CHECK: kernel.prim "relu"
// CHECK-COUNT-1: kernel.write
// LIBRARY-LABEL: func.func @main
// LIBRARY-NOT: dlc.derived
// LIBRARY: dlc.mm
// LIBRARY: dlc.launch @{{.*}}add_relu_add(
// LIBRARY-NEXT: return
func.func @main(%x: tensor<6x24xf32>, %w: tensor<40x24xf32> {dlc.state}, %b: tensor<40xf32>, %r: tensor<6x40xf32>) -> tensor<6x40xf32> attributes {dlc.symbols = array<i64>} {
  %wt = dlc.transpose(%w) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<40x24xf32>) -> tensor<24x40xf32>
  %one = arith.constant 1 : i64
  %p = dlc.mm(%x, %wt) : (tensor<6x24xf32>, tensor<24x40xf32>) -> tensor<6x40xf32>
  %h = dlc.add(%p, %b, %one) : (tensor<6x40xf32>, tensor<40xf32>, i64) -> tensor<6x40xf32>
  %a = dlc.relu(%h) : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %y = dlc.add(%a, %r, %one) : (tensor<6x40xf32>, tensor<6x40xf32>, i64) -> tensor<6x40xf32>
  return %y : tensor<6x40xf32>
}

// -----

// A row reduction does not join, a product no other product; two users of one weight share its packed copy.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: dlc.derived
// CHECK-NOT: dlc.derived
// CHECK: dlc.launch @{{.*}}mm_exp(
// CHECK: dlc.launch @{{.*}}mm(
// CHECK: dlc.launch @{{.*}}sum(
// CHECK: return
func.func @main(%x: tensor<6x24xf32>, %w: tensor<24x24xf32> {dlc.state}) -> tensor<6xf32> attributes {dlc.symbols = array<i64>} {
  %p = dlc.mm(%x, %w) : (tensor<6x24xf32>, tensor<24x24xf32>) -> tensor<6x24xf32>
  %e = dlc.exp(%p) : (tensor<6x24xf32>) -> tensor<6x24xf32>
  %q = dlc.mm(%e, %w) : (tensor<6x24xf32>, tensor<24x24xf32>) -> tensor<6x24xf32>
  %s = dlc.sum(%q) {dim = array<i64: 1>, keepdim = false} : (tensor<6x24xf32>) -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// -----

// A slice of a sum of products with a bias: the bias is added before, in the product's kernel.
// CHECK-LABEL: func.func @main
// CHECK: dlc.launch @{{.*}}mm_add(
// CHECK: dlc.launch @{{.*}}exp(
func.func @main(%x: tensor<6x24xf32>, %w: tensor<24x48xf32> {dlc.state}, %b: tensor<48xf32>) -> tensor<6x24xf32> attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : index
  %end = arith.constant 24 : index
  %p = dlc.mm(%x, %w) : (tensor<6x24xf32>, tensor<24x48xf32>) -> tensor<6x48xf32>
  %h = dlc.add(%p, %b, %one) : (tensor<6x48xf32>, tensor<48xf32>, i64) -> tensor<6x48xf32>
  %step = arith.constant 1 : index
  %t = dlc.slice(%h, %zero, %end, %step) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<6x48xf32>, index, index, index) -> tensor<6x24xf32>
  %e = dlc.exp(%t) : (tensor<6x24xf32>) -> tensor<6x24xf32>
  return %e : tensor<6x24xf32>
}
