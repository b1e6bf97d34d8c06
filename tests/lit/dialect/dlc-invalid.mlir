// The messages of meta functions reach the reader of text; malformed ops are refused, never crashed on.
// RUN: dlc-opt %s -split-input-file -verify-diagnostics

func.func @broadcast(%a: tensor<3xf32>, %b: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+2 {{dlc.mul: mul: sizes [3] and [4] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dlc.mul(%a, %b) : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @dim(%a: tensor<2x3xf32>) -> tensor<2xf32> {
  // expected-error @+2 {{dlc.sum: sum: `dim` is 5, out of range for 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dlc.sum(%a) {dim = array<i64: 5>, keepdim = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @result(%a: tensor<2x3xf32>) -> tensor<2xf32> {
  // expected-error @+2 {{inferred type(s) 'tensor<3xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dlc.sum(%a) {dim = array<i64: 0>, keepdim = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @dtype(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+2 {{dlc.bitwise_not: bitwise_not: not implemented for float32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dlc.bitwise_not(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @unknown_size(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+2 {{dlc.neg:}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dlc.neg(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @missing_attribute(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{requires attribute 'dim'}}
  %0 = dlc.softmax(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @segments(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{operand count (1) does not match with the total size (3) specified in attribute 'operandSegmentSizes'}}
  %0 = dlc.clamp(%a) {operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @operand_kind(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{operand #2 must be 1-bit signless integer or 64-bit signless integer or 64-bit float, but got 'tensor<2xf32>'}}
  %0 = dlc.add(%a, %a, %a) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @unknown_op(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{custom op 'dlc.no_such_op' is unknown}}
  %0 = dlc.no_such_op(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
