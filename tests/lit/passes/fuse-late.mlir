// RUN: dlc-opt --phase-simplified --dlc-fuse='contract=0' %s | FileCheck %s

// What a backward reads again of its forward is computed again from what is in memory anyway: all gelus of the first
// half are alive at the turning point otherwise, beside the products that they come from. The copies share their
// kernel with the originals, and each stands right before its late user.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.+]] = dlc.mm(%arg0
// CHECK: dlc.launch @[[GELU:k[0-9]+_gelu]](%[[P]])
// CHECK: %[[Q:.+]] = dlc.mm
// CHECK: dlc.launch @[[GELU]](%[[Q]])
// CHECK: dlc.mm
// CHECK: dlc.mm
// CHECK: dlc.launch @[[GELU]](%[[Q]])
// CHECK: dlc.launch @{{.*}}_gelu_backward
// CHECK: dlc.launch @[[GELU]](%[[P]])
func.func @main(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> attributes {dlc.symbols = array<i64>} {
  %p = dlc.mm(%x, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %a = dlc.gelu(%p) {approximate = "none"} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = dlc.mm(%a, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %b = dlc.gelu(%q) {approximate = "none"} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = dlc.mm(%b, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %g = dlc.mm(%r, %r) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %h = dlc.mm(%g, %b) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %i = dlc.gelu_backward(%h, %q) {approximate = "none"} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %j = dlc.mm(%i, %a) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %k = dlc.gelu_backward(%j, %p) {approximate = "none"} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %k : tensor<256x256xf32>
}
