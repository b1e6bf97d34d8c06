// RUN: dlc-run %s --compare --steps | FileCheck %s
func.func @main(%x: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, %b: tensor<64xf32>, %n: f64, %s0: index {dlc.symbol = 0 : i64})
    -> tensor<?xf32, affine_map<()[s0] -> (s0)>> attributes {dlc.symbols = array<i64: 5>} {
  %one = arith.constant 1 : i64
  %0 = dlc.add(%x, %b, %one) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, tensor<64xf32>, i64) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %1 = dlc.mul(%0, %n) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, f64) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %2 = dlc.exp(%1) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %3 = dlc.sum(%2) {dim = array<i64: 1>, keepdim = false} : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
  return %3 : tensor<?xf32, affine_map<()[s0] -> (s0)>>
}
// CHECK: 1 kernels (1 distinct), 0 library calls, 0 other steps, 0 copies
// CHECK: compare 0: equal
