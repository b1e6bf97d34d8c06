// RUN: dlc-run %s --compare --steps --quiet | FileCheck %s
// A write back goes to the input's memory at once where nobody reads the old value later (%p), or only at the same points of
// the same kernel (%q, whose old value is a result too), and is a copy at the end
// where a later step may fail (%r), or where another input shares the memory (%s).
// CHECK: 2 copies
// CHECK-COUNT-5: equal
func.func @main(%p: tensor<8xf32>, %q: tensor<8xf32>, %r: tensor<8xf32>, %s: tensor<8xf32> {dlc.shared}, %i: tensor<3xi64>)
    -> (tensor<8xf32> {dlc.write_back = 0 : i64}, tensor<8xf32> {dlc.write_back = 1 : i64}, tensor<8xf32>,
        tensor<8xf32> {dlc.write_back = 2 : i64}, tensor<8xf32> {dlc.write_back = 3 : i64}, tensor<3xf32>) attributes {dlc.symbols = array<i64>} {
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  %3 = dlc.mul(%r, %half) : (tensor<8xf32>, f64) -> tensor<8xf32>
  %5 = dlc.gather(%3, %i) {dim = 0 : i64} : (tensor<8xf32>, tensor<3xi64>) -> tensor<3xf32>
  %0 = dlc.mul(%p, %half) : (tensor<8xf32>, f64) -> tensor<8xf32>
  %1 = dlc.mul(%q, %half) : (tensor<8xf32>, f64) -> tensor<8xf32>
  %4 = dlc.mul(%s, %half) : (tensor<8xf32>, f64) -> tensor<8xf32>
  return %0, %1, %q, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3xf32>
}
