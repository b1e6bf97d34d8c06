// RUN: dlc-opt --phase-simplified --phase-fused %s | dlc-translate --emit-cuda | FileCheck %s

// Fusion's own kernel: a chain with a broadcast and a number operand, summed by rows.
// CHECK: extern "C" __global__ void __launch_bounds__(256) k_k0_add_mul_exp_sum(
// CHECK: const float [[S:v[0-9]+]] = (float)a4;
// CHECK: for (long long p = blockIdx.x;
// CHECK: for (long long i_r1 = lane;
// CHECK: * [[S]];
// CHECK: dlc_exp_f32(
// CHECK: dlc_row_reduce<dlc_add, 256>
// CHECK: if (lane == 0)
func.func @main(%x: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, %b: tensor<64xf32>, %n: f64, %s0: index {dlc.symbol = 0 : i64})
    -> tensor<?xf32, affine_map<()[s0] -> (s0)>> attributes {dlc.symbols = array<i64: 5>} {
  %one = arith.constant 1 : i64
  %0 = dlc.add(%x, %b, %one) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, tensor<64xf32>, i64) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %1 = dlc.mul(%0, %n) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, f64) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %2 = dlc.exp(%1) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
  %3 = dlc.sum(%2) {dim = array<i64: 1>, keepdim = false} : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
  return %3 : tensor<?xf32, affine_map<()[s0] -> (s0)>>
}
