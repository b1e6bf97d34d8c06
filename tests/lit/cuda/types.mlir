// RUN: dlc-translate --emit-cuda %s | FileCheck %s

// f16 and bf16 are computed in float and rounded after each operation.
// CHECK: asm("cvt.rn.f16.f32
// CHECK: void __launch_bounds__(256) k_halves(const unsigned short *a0, const unsigned short *a1, unsigned short *a2, unsigned short *a3,
// CHECK: const float [[X:v[0-9]+]] = dlc_from_f16(a0[
// CHECK: dlc_round_f16([[X]] * [[X]]);
// CHECK: dlc_round_f16(dlc_exp_f32(
// CHECK: dlc_round_bf16(
// CHECK: a2[i_i] = dlc_to_f16(
// CHECK: a3[i_i] = dlc_to_bf16(
kernel.func @halves(%x: memref<?xf16, strided<[1]>>, %z: memref<?xbf16, strided<[1]>>, %y: memref<?xf16, strided<[1]>>,
                    %w: memref<?xbf16, strided<[1]>>, %N: index, %err: memref<i64>) domain(i = %N) outs(%y, %w) {
  %a = kernel.map over(i) : !kernel.val<f16, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf16, strided<[1]>> -> f16
    %1 = arith.mulf %0, %0 : f16
    %2 = kernel.prim "exp"(%1) : (f16) -> f16
    kernel.yield %2 : f16
  }
  %b = kernel.map over(i) : !kernel.val<bf16, [i]> {
    %0 = kernel.read %z[affine_map<(d0) -> (d0)>] : memref<?xbf16, strided<[1]>> -> bf16
    %1 = arith.addf %0, %0 : bf16
    %2 = kernel.prim "tanh"(%1) : (bf16) -> bf16
    kernel.yield %2 : bf16
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f16, [i]>, memref<?xf16, strided<[1]>>
  kernel.write %b, %w[affine_map<(d0) -> (d0)>] : !kernel.val<bf16, [i]>, memref<?xbf16, strided<[1]>>
}

// Bool lives in a byte; u8 is signless until a primitive says so; a division by zero sets the error slot.
// CHECK: void __launch_bounds__(256) k_ints(const signed char *a0, const int *a1, signed char *a2, signed char *a3, int *a4,
// CHECK: != 0;
// CHECK: (signed char)dlc_floor_div_u8(err, (unsigned char)
// CHECK: dlc_floor_div_i32(err,
kernel.func @ints(%x: memref<?xi8, strided<[1]>>, %d: memref<?xi32, strided<[1]>>, %b: memref<?xi8, strided<[1]>>,
                  %u: memref<?xi8, strided<[1]>>, %q: memref<?xi32, strided<[1]>>, %N: index, %err: memref<i64>)
    domain(i = %N) outs(%b, %u, %q) {
  %t = kernel.map over(i) : !kernel.val<i1, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xi8, strided<[1]>> -> i1
    %true = arith.constant true
    %1 = arith.xori %0, %true : i1
    kernel.yield %1 : i1
  }
  %h = kernel.map over(i) : !kernel.val<i8, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xi8, strided<[1]>> -> i8
    %seven = arith.constant 7 : i8
    %1 = kernel.prim "floor_div"(%0, %seven) {unsigned} : (i8, i8) -> i8
    kernel.yield %1 : i8
  }
  %q2 = kernel.map over(i) : !kernel.val<i32, [i]> {
    %0 = kernel.read %d[affine_map<(d0) -> (d0)>] : memref<?xi32, strided<[1]>> -> i32
    %hundred = arith.constant 100 : i32
    %1 = kernel.prim "floor_div"(%hundred, %0) : (i32, i32) -> i32
    kernel.yield %1 : i32
  }
  kernel.write %t, %b[affine_map<(d0) -> (d0)>] : !kernel.val<i1, [i]>, memref<?xi8, strided<[1]>>
  kernel.write %h, %u[affine_map<(d0) -> (d0)>] : !kernel.val<i8, [i]>, memref<?xi8, strided<[1]>>
  kernel.write %q2, %q[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [i]>, memref<?xi32, strided<[1]>>
}

// Reductions of ints and bools: sums wrap, any, unsigned maximum.
// CHECK: void __launch_bounds__(256) k_int_reductions(
// CHECK: bool [[ANY:acc[0-9]+]] = false;
// CHECK: unsigned char [[MAX:acc[0-9]+]] = (unsigned char)0;
// CHECK: [[ANY]] = dlc_or::join([[ANY]],
// CHECK: [[MAX]] = dlc_max::join([[MAX]], (unsigned char)
kernel.func @int_reductions(%x: memref<?xi8, strided<[1]>>, %w: memref<?xi64, strided<[1]>>, %any: memref<i8>,
                            %max: memref<i8>, %sum: memref<i64>, %N: index, %err: memref<i64>) domain(i = %N)
    outs(%any, %max, %sum) {
  %r:3 = kernel.reduce over(i) by(i) combine [or, maxu, add] : !kernel.val<i1, []>, !kernel.val<i8, []>, !kernel.val<i64, []> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xi8, strided<[1]>> -> i1
    %1 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xi8, strided<[1]>> -> i8
    %2 = kernel.read %w[affine_map<(d0) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    kernel.yield %0, %1, %2 : i1, i8, i64
  }
  kernel.write %r#0, %any[affine_map<() -> ()>] : !kernel.val<i1, []>, memref<i8>
  kernel.write %r#1, %max[affine_map<() -> ()>] : !kernel.val<i8, []>, memref<i8>
  kernel.write %r#2, %sum[affine_map<() -> ()>] : !kernel.val<i64, []>, memref<i64>
}
