// RUN: dlc-opt --split-input-file --dlc-simplify --dlc-raise-attention %s | FileCheck %s

// Heads as a batch dimension of the products, scores divided and masked: one op over the tensors with heads, whose
// result goes where the next layer wants it.
// CHECK-LABEL: func.func @masked
// CHECK-SAME: (%[[q:.*]]: tensor<2x3x5x8xf32>, %[[k:.*]]: tensor<2x3x7x8xf32>, %[[v:.*]]: tensor<2x3x7x4xf32>, %[[m:.*]]: tensor<5x7xi1>, %[[c:.*]]: f64, %[[f:.*]]: f64)
// CHECK-NOT: bmm
// CHECK-NOT: softmax
// CHECK: %[[not:.*]] = dlc.logical_not(%[[m]])
// CHECK: %[[mask:.*]] = dlc.view(%[[not]]
// CHECK: %[[out:.*]], %{{.*}} = dlc.attention(%[[q]], %[[k]], %[[v]], %[[mask]], %[[c]], %[[f]]) {divides = true, is_causal = false, zero_empty = false}
// CHECK: dlc.transpose(%[[out]]) {dim0 = 1 : i64, dim1 = 2 : i64}
// CHECK-NOT: bmm
func.func @masked(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi1>, %c: f64, %f: f64) -> tensor<2x3x5x4xf32> attributes {dlc.symbols = array<i64>} {
  %i2 = arith.constant 2 : index
  %i3 = arith.constant 3 : index
  %i4 = arith.constant 4 : index
  %i5 = arith.constant 5 : index
  %i6 = arith.constant 6 : index
  %i7 = arith.constant 7 : index
  %i8 = arith.constant 8 : index
  %q3 = dlc.view(%q, %i6, %i5, %i8) : (tensor<2x3x5x8xf32>, index, index, index) -> tensor<6x5x8xf32>
  %kt = dlc.transpose(%k) {dim0 = -2 : i64, dim1 = -1 : i64} : (tensor<2x3x7x8xf32>) -> tensor<2x3x8x7xf32>
  %k3 = dlc.view(%kt, %i6, %i8, %i7) : (tensor<2x3x8x7xf32>, index, index, index) -> tensor<6x8x7xf32>
  %s3 = dlc.bmm(%q3, %k3) : (tensor<6x5x8xf32>, tensor<6x8x7xf32>) -> tensor<6x5x7xf32>
  %s = dlc.view(%s3, %i2, %i3, %i5, %i7) : (tensor<6x5x7xf32>, index, index, index, index) -> tensor<2x3x5x7xf32>
  %d = dlc.div(%s, %c) : (tensor<2x3x5x7xf32>, f64) -> tensor<2x3x5x7xf32>
  %x = dlc.masked_fill(%d, %m, %f) : (tensor<2x3x5x7xf32>, tensor<5x7xi1>, f64) -> tensor<2x3x5x7xf32>
  %p = dlc.softmax(%x) {dim = -1 : i64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %p3 = dlc.view(%p, %i6, %i5, %i7) : (tensor<2x3x5x7xf32>, index, index, index) -> tensor<6x5x7xf32>
  %v3 = dlc.view(%v, %i6, %i7, %i4) : (tensor<2x3x7x4xf32>, index, index, index) -> tensor<6x7x4xf32>
  %o3 = dlc.bmm(%p3, %v3) : (tensor<6x5x7xf32>, tensor<6x7x4xf32>) -> tensor<6x5x4xf32>
  %o = dlc.view(%o3, %i2, %i3, %i5, %i4) : (tensor<6x5x4xf32>, index, index, index, index) -> tensor<2x3x5x4xf32>
  return %o : tensor<2x3x5x4xf32>
}

// -----

// No heads, a bias on the left of the sum, a scale.
// CHECK-LABEL: func.func @biased
// CHECK: dlc.attention({{.*}}) {divides = false
// CHECK-NOT: bmm
func.func @biased(%q: tensor<2x5x8xf32>, %k: tensor<2x8x7xf32>, %v: tensor<2x7x4xf32>, %b: tensor<2x5x7xf32>) -> tensor<2x5x4xf32> attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %c = arith.constant 2.5e-01 : f64
  %s = dlc.bmm(%q, %k) : (tensor<2x5x8xf32>, tensor<2x8x7xf32>) -> tensor<2x5x7xf32>
  %d = dlc.mul(%s, %c) : (tensor<2x5x7xf32>, f64) -> tensor<2x5x7xf32>
  %x = dlc.add(%b, %d, %one) : (tensor<2x5x7xf32>, tensor<2x5x7xf32>, i64) -> tensor<2x5x7xf32>
  %p = dlc.softmax(%x) {dim = 2 : i64} : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %o = dlc.bmm(%p, %v) : (tensor<2x5x7xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// The gradient in the same function: its products become one op too. It has numbers of its own.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[c:[a-z0-9]*]]: f64, %[[c2:[a-z0-9]*]]: f64, %[[z:[a-z0-9]*]]: f64)
// CHECK: dlc.attention(
// CHECK: dlc.attention_backward({{.*}}%[[c]], {{.*}}, %[[c2]], %[[z]])
// CHECK-NOT: bmm
func.func @gradient(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %g: tensor<2x5x4xf32>, %m: tensor<5x7xi1>, %c: f64, %c2: f64, %z: f64) -> (tensor<2x5x4xf32>, tensor<2x5x8xf32>, tensor<2x8x7xf32>, tensor<2x7x4xf32>) attributes {dlc.symbols = array<i64>} {
  %inf = arith.constant 0xFFF0000000000000 : f64
  %kt = dlc.transpose(%k) {dim0 = 1 : i64, dim1 = 2 : i64} : (tensor<2x7x8xf32>) -> tensor<2x8x7xf32>
  %s = dlc.bmm(%q, %kt) : (tensor<2x5x8xf32>, tensor<2x8x7xf32>) -> tensor<2x5x7xf32>
  %d = dlc.mul(%s, %c) : (tensor<2x5x7xf32>, f64) -> tensor<2x5x7xf32>
  %x = dlc.where(%m, %d, %inf) : (tensor<5x7xi1>, tensor<2x5x7xf32>, f64) -> tensor<2x5x7xf32>
  %p = dlc.softmax(%x) {dim = -1 : i64} : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %o = dlc.bmm(%p, %v) : (tensor<2x5x7xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  %vt = dlc.transpose(%v) {dim0 = 1 : i64, dim1 = 2 : i64} : (tensor<2x7x4xf32>) -> tensor<2x4x7xf32>
  %gp = dlc.bmm(%g, %vt) : (tensor<2x5x4xf32>, tensor<2x4x7xf32>) -> tensor<2x5x7xf32>
  %pt = dlc.transpose(%p) {dim0 = 1 : i64, dim1 = 2 : i64} : (tensor<2x5x7xf32>) -> tensor<2x7x5xf32>
  %gv = dlc.bmm(%pt, %g) : (tensor<2x7x5xf32>, tensor<2x5x4xf32>) -> tensor<2x7x4xf32>
  %gs = dlc.softmax_backward(%gp, %p) {dim = -1 : i64} : (tensor<2x5x7xf32>, tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %gm = dlc.where(%m, %gs, %z) : (tensor<5x7xi1>, tensor<2x5x7xf32>, f64) -> tensor<2x5x7xf32>
  %gd = dlc.mul(%gm, %c2) : (tensor<2x5x7xf32>, f64) -> tensor<2x5x7xf32>
  %gq = dlc.bmm(%gd, %k) : (tensor<2x5x7xf32>, tensor<2x7x8xf32>) -> tensor<2x5x8xf32>
  %qt = dlc.transpose(%q) {dim0 = 1 : i64, dim1 = 2 : i64} : (tensor<2x5x8xf32>) -> tensor<2x8x5xf32>
  %gk = dlc.bmm(%qt, %gd) : (tensor<2x8x5xf32>, tensor<2x5x7xf32>) -> tensor<2x8x7xf32>
  return %o, %gq, %gk, %gv : tensor<2x5x4xf32>, tensor<2x5x8xf32>, tensor<2x8x7xf32>, tensor<2x7x4xf32>
}

// -----

// The probabilities are a result.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: dlc.attention
// CHECK: softmax
func.func @kept(%q: tensor<2x5x8xf32>, %k: tensor<2x8x7xf32>, %v: tensor<2x7x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x7xf32>) attributes {dlc.symbols = array<i64>} {
  %s = dlc.bmm(%q, %k) : (tensor<2x5x8xf32>, tensor<2x8x7xf32>) -> tensor<2x5x7xf32>
  %p = dlc.softmax(%s) {dim = -1 : i64} : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %o = dlc.bmm(%p, %v) : (tensor<2x5x7xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return %o, %p : tensor<2x5x4xf32>, tensor<2x5x7xf32>
}

// -----

// The scores are read twice.
// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: dlc.attention
// CHECK: softmax
func.func @read_twice(%q: tensor<2x5x8xf32>, %k: tensor<2x8x7xf32>, %v: tensor<2x7x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x7xf32>) attributes {dlc.symbols = array<i64>} {
  %s = dlc.bmm(%q, %k) : (tensor<2x5x8xf32>, tensor<2x8x7xf32>) -> tensor<2x5x7xf32>
  %e = dlc.exp(%s) : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %p = dlc.softmax(%s) {dim = -1 : i64} : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %o = dlc.bmm(%p, %v) : (tensor<2x5x7xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return %o, %e : tensor<2x5x4xf32>, tensor<2x5x7xf32>
}

// -----

// Along another dimension, on the right of the product, and with something else before the product.
// CHECK-LABEL: func.func @others
// CHECK-NOT: dlc.attention
// CHECK-COUNT-3: softmax
func.func @others(%q: tensor<2x7x8xf32>, %k: tensor<2x8x7xf32>, %v: tensor<2x7x7xf32>) -> (tensor<2x7x7xf32>, tensor<2x7x7xf32>, tensor<2x7x7xf32>) attributes {dlc.symbols = array<i64>} {
  %s = dlc.bmm(%q, %k) : (tensor<2x7x8xf32>, tensor<2x8x7xf32>) -> tensor<2x7x7xf32>
  %p = dlc.softmax(%s) {dim = 1 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %a = dlc.bmm(%p, %v) : (tensor<2x7x7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %s1 = dlc.bmm(%v, %a) : (tensor<2x7x7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %p1 = dlc.softmax(%s1) {dim = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %b = dlc.bmm(%v, %p1) : (tensor<2x7x7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %s2 = dlc.bmm(%a, %v) : (tensor<2x7x7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %t = dlc.tanh(%s2) : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %p2 = dlc.softmax(%t) {dim = 2 : i64} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %p3 = dlc.gelu(%p2) {approximate = "none"} : (tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  %c = dlc.bmm(%p3, %v) : (tensor<2x7x7xf32>, tensor<2x7x7xf32>) -> tensor<2x7x7xf32>
  return %a, %b, %c : tensor<2x7x7xf32>, tensor<2x7x7xf32>, tensor<2x7x7xf32>
}
