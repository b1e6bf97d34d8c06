// RUN: split-file %s %t
// RUN: not dlc-run %t/garbage.mlir 2>&1 | FileCheck %s --check-prefix=GARBAGE
// RUN: not dlc-run %t/dim.mlir 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not dlc-run %t/name.mlir 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dlc-run %t/declaration.mlir 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dlc-run %t/dynamic.mlir 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// RUN: not dlc-run %t/blocks.mlir 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not dlc-run %t/index.mlir --int-max 100 2>&1 | FileCheck %s --check-prefix=INDEX
// What is not a program gives a diagnostic and exit status 1, as does an index out of range at run time.
// GARBAGE: error: custom op 'garbage' is unknown
// DIM: `dim` is 5, out of range
// NAME: the module has no function @main with a body
// DYNAMIC: an argument that is no tensor of known sizes
// BLOCKS: Repeat with: dlc-opt --phase-captured
// INDEX: index out of range in {{.*}}embedding

//--- garbage.mlir
garbage {
//--- dim.mlir
func.func @main(%x: tensor<2xf32>) -> tensor<1xf32> {
  %0 = dlc.sum(%x) {dim = array<i64: 5>, keepdim = true} : (tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
//--- name.mlir
func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
//--- declaration.mlir
func.func private @main(%x: tensor<2xf32>) -> tensor<2xf32>
//--- dynamic.mlir
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
//--- blocks.mlir
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  cf.br ^next
^next:
  return %x : tensor<2xf32>
}
//--- index.mlir
func.func @main(%i: tensor<50xi64>, %w: tensor<7x4xf32>) -> tensor<50x4xf32> attributes {dlc.symbols = array<i64>} {
  %0 = dlc.embedding(%i, %w) : (tensor<50xi64>, tensor<7x4xf32>) -> tensor<50x4xf32>
  return %0 : tensor<50x4xf32>
}
