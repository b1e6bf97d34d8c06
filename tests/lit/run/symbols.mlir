// RUN: dlc-run %s --compare --quiet | FileCheck %s
// RUN: dlc-run %s --compare --quiet --symbols=1,9 | FileCheck %s
// RUN: dlc-run %s --compare --quiet --symbols=17,33 | FileCheck %s
// RUN: dlc-run %s --compare --quiet --symbols=0,4 | FileCheck %s
// RUN: dlc-run %s --compare --quiet --symbols=3,0 | FileCheck %s
// RUN: dlc-run %s --compare --quiet --no-fuse | FileCheck %s
// One plan for every size: rows, columns, a joined dim, a strided input and a strided result.
// CHECK: compare 0: equal
// CHECK: compare 1: equal
// CHECK: compare 2: equal
#x = affine_map<()[s0, s1] -> (s0, s1)>
#t = affine_map<()[s0, s1] -> (1, s0)>
#flat = affine_map<()[s0, s1] -> (s0 * s1)>
#cols = affine_map<()[s0, s1] -> (s1)>
func.func @main(%x: tensor<?x?xf32, #x>, %y: tensor<?x?xf32, #x> {dlc.strides = #t}, %s0: index {dlc.symbol = 0 : i64}, %s1: index {dlc.symbol = 1 : i64})
    -> (tensor<?x?xf32, #x> {dlc.strides = #t}, tensor<?xf32, #cols>, tensor<?xf32, #flat>) attributes {dlc.symbols = array<i64: 5, 6>} {
  %one = arith.constant 1 : i64
  %n = affine.apply #flat()[%s0, %s1]
  %0 = dlc.sub(%x, %y, %one) : (tensor<?x?xf32, #x>, tensor<?x?xf32, #x>, i64) -> tensor<?x?xf32, #x>
  %1 = dlc.softmax(%0) {dim = 1 : i64} : (tensor<?x?xf32, #x>) -> tensor<?x?xf32, #x>
  %2 = dlc.sum(%0) {dim = array<i64: 0>, keepdim = false} : (tensor<?x?xf32, #x>) -> tensor<?xf32, #cols>
  %3 = dlc.view(%0, %n) : (tensor<?x?xf32, #x>, index) -> tensor<?xf32, #flat>
  %4 = dlc.tanh(%3) : (tensor<?xf32, #flat>) -> tensor<?xf32, #flat>
  return %1, %2, %4 : tensor<?x?xf32, #x>, tensor<?xf32, #cols>, tensor<?xf32, #flat>
}
