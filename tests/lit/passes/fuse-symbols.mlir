// RUN: dlc-opt --phase-simplified --phase-fused %s | FileCheck %s
// s0 and s1 have one hint but are not one size: their maps stay two kernels; s0 with itself is one domain.
// CHECK-LABEL: func.func @main
// CHECK-DAG: dlc.launch @k0_exp_mul(%arg0)
// CHECK-DAG: dlc.launch @k1_exp(%arg1)
// CHECK-NOT: dlc.launch
#a = affine_map<()[s0, s1] -> (s0)>
#b = affine_map<()[s0, s1] -> (s1)>
func.func @main(%x: tensor<?xf32, #a>, %y: tensor<?xf32, #b>, %s0: index {dlc.symbol = 0 : i64}, %s1: index {dlc.symbol = 1 : i64})
    -> (tensor<?xf32, #a>, tensor<?xf32, #b>) attributes {dlc.symbols = array<i64: 6, 6>} {
  %0 = dlc.exp(%x) : (tensor<?xf32, #a>) -> tensor<?xf32, #a>
  %1 = dlc.exp(%y) : (tensor<?xf32, #b>) -> tensor<?xf32, #b>
  %2 = dlc.mul(%0, %x) : (tensor<?xf32, #a>, tensor<?xf32, #a>) -> tensor<?xf32, #a>
  return %2, %1 : tensor<?xf32, #a>, tensor<?xf32, #b>
}
