// RUN: not dlc-translate --emit-cuda %s 2>&1 | FileCheck %s
// RUN: env DLC_NVRTC=/nowhere/libnvrtc.so not dlc-translate --emit-cuda --arch=sm_80 %S/maps.mlir 2>&1 | FileCheck %s --check-prefix=NVRTC

// A primitive on a kind it is not defined for is an error at its place, not wrong text.
// CHECK: errors.mlir:[[#@LINE+5]]:{{[0-9]+}}: error: 'kernel.prim' op can't be printed as CUDA: there is no primitive 'exp' on these operands
kernel.func @exp_of_ints(%x: memref<?xi32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>, %N: index, %err: memref<i64>)
    domain(i = %N) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<i32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xi32, strided<[1]>> -> i32
    %1 = kernel.prim "exp"(%0) : (i32) -> i32
    kernel.yield %1 : i32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [i]>, memref<?xi32, strided<[1]>>
}

// NVRTC: CUDA: the NVRTC library can't be opened; tried
// NVRTC: install it (pip install nvidia-cuda-nvrtc) or set DLC_NVRTC to its path
