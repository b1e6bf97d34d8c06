// Each rule of the kernel dialect's verifiers.
// RUN: dlc-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{needs the error slot 'memref<i64>' as last argument}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{argument #3 must be a memref, index, i64 or f64}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %q: i32, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{argument #3 has unsupported element type 'i1'; bool buffers are i8}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %q: memref<?xi1>, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{argument #3 must have strided layout with offset 0}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %q: memref<?xf32, strided<[1], offset: ?>>, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{names dim 'i' twice}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n, i = 3) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{size of dim 'i' must be an index argument}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %x) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{outs must be memref arguments}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%n, %y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{output #1 must be written by exactly one kernel.write, has 0}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

// expected-error @below {{schedule order must name every dim once}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y)
    attributes {schedule = #kernel.schedule<order = [i, i]>} {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{schedule names unknown dim 'k'}}
kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y)
    attributes {schedule = #kernel.schedule<par = [k]>} {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  // expected-error @below {{can't stand in a kernel outside a stage}}
  kernel.func @g(%e: memref<i64>) domain() outs() {
  }
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{over names 'k', which is no dim of the domain}}
%b = kernel.map over(k) : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{over names 'i' twice}}
%b = kernel.map over(i, i) : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{result #0 must have element type 'f64', has 'f32'}}
%b = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f64
    kernel.yield %0 : f64
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{result #0 must have the dims that are left, in order}}
%b = kernel.map over(i) : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{must yield one scalar for each result}}
%b = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0, %0 : f32, f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f32
    // expected-error @below {{can't stand in a stage: only reads, uses and scalar ops}}
    %m = func.call @f() : () -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{must reduce by at least one dim}}
  %b = kernel.reduce over(i) by() combine [add] : !kernel.val<f32, [i]> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n, j = 3) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{by must be a subset of over}}
  %b = kernel.reduce over(i) by(j) combine [add] : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{must have one yielded scalar and one combine for each result}}
  %b = kernel.reduce over(i) by(i) combine [add, mul] : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{combine 'or' needs integers}}
  %b = kernel.reduce over(i) by(i) combine [or] : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{combine 'max' can't take 'i1'}}
  %b = kernel.reduce over(i) by(i) combine [max] : !kernel.val<i1, []> {
    %0 = arith.constant true
    kernel.yield %0 : i1
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{result #0 must have element type 'i64', has 'f32'}}
  %b = kernel.reduce over(i) by(i) combine [argmax] : !kernel.val<f32, []> {
    %0 = arith.constant 1.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{map must have 1 dims and 0 symbols, has 2 and 0}}
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{map must have 1 results for 'memref<?xf32, strided<[1]>>'}}
    %0 = kernel.read %x[affine_map<(d0) -> (d0, d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{element 'i32' does not match buffer of 'f32'}}
    %1 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> i32
    %0 = arith.constant 0.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{bound needs the list of checked indices and one size for each}}
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] bound check [0, 0] of (%n) : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{bound names index #1 of a buffer of rank 1}}
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] bound check [1] of (%n) : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{needs a pad value exactly when bound is pad}}
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] bound pad [0] of (%n) : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over() : !kernel.val<f32, []> {
    // expected-error @below {{value has dim 'i', which this stage does not}}
    %0 = kernel.use %a : !kernel.val<f32, [i]> -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{result must be 'f32'}}
    %1 = kernel.use %a : !kernel.val<f32, [i]> -> f64
    %0 = arith.constant 0.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n, j = 3) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    // expected-error @below {{'j' is no dim of the stage}}
    %1 = kernel.index j : i64
    %0 = arith.constant 0.0 : f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %b = kernel.map over(i) : !kernel.val<f32, [i]> {
    %1 = arith.constant 0.0 : f32
    // expected-error @below {{unknown primitive 'no_such'}}
    %0 = kernel.prim "no_such"(%1) : (f32) -> f32
    kernel.yield %0 : f32
  }
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  // expected-error @below {{must write an output of the kernel}}
  kernel.write %a, %x[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  // expected-error @below {{writes one place for all of dim 'i'; only an accumulating write may}}
  kernel.write %a, %y[affine_map<(d0) -> (0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  // expected-error @below {{bound of a write must be check or wrap}}
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] bound clamp [0] of (%n) : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  // expected-error @below {{can't accumulate by argmax or argmin}}
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] accumulate argmax : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  // expected-error @below {{index values of a scatter must be i64}}
  kernel.write %a, %y[affine_map<(d0)[s0] -> (s0)>] syms(%a : !kernel.val<f32, [i]>) : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
}

// -----

// expected-error @below {{schedule field 'vec' must be {dim = width}, width a power of two up to 64}}
#s = #kernel.schedule<vec = {i = 3}>

// -----

// expected-error @below {{schedule field 'unroll' must be a positive integer}}
#s = #kernel.schedule<unroll = 0>

// -----

// expected-error @below {{schedule field 'unroll' must be at most 16}}
#s = #kernel.schedule<unroll = 17>

// -----

// expected-error @below {{schedule field 'tail' must be mask, single or auto}}
#s = #kernel.schedule<tail = odd>

// -----

// expected-error @below {{placement of 's0' must be out or recompute}}
#s = #kernel.schedule<place = {s0 = moon}>

// -----

// expected-error @below {{unknown schedule field 'colour'}}
#s = #kernel.schedule<colour = 3>

// -----

// expected-error @below {{schedule field 'order' must be a list of dims}}
#s = #kernel.schedule<order = i>

// -----

// expected-error @below {{schedule field 'unroll' is given twice}}
#s = #kernel.schedule<unroll = 1, unroll = 2>

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %M: index, %K: index, %err: memref<i64>) domain(m = %M, k = %K) outs(%y) {
  // expected-error @below {{must reduce by at least one dim}}
  %a = kernel.contract over(m, k) by() : !kernel.val<f32, [m]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [m]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %M: index, %K: index, %err: memref<i64>) domain(m = %M, k = %K) outs(%y) {
  // expected-error @below {{lhs must yield one scalar}}
  %a = kernel.contract over(m, k) by(k) : !kernel.val<f32, [m]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0, %0 : f32, f32
  } rhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [m]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %M: index, %K: index, %err: memref<i64>) domain(m = %M, k = %K) outs(%y) {
  // expected-error @below {{result #0 must have the dims that are left, in order}}
  %a = kernel.contract over(m, k) by(m) : !kernel.val<f32, [m]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [m]>, memref<?xf32, strided<[1]>>
}

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>, %M: index, %K: index, %err: memref<i64>) domain(m = %M, k = %K) outs(%y) {
  // expected-error @below {{lhs yields 'f32', which can't be summed in 'i32'}}
  %a = kernel.contract over(m, k) by(k) : !kernel.val<i32, [m]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [m]>, memref<?xi32, strided<[1]>>
}

// -----

// expected-error @below {{schedule field 'micro' must give sizes for m, n and k}}
#s = #kernel.schedule<micro = {m = 0}>

// -----

// expected-error @below {{schedule field 'block' must give sizes for m, n and k}}
#s = #kernel.schedule<block = {x = 4}>

// -----

// expected-error @below {{schedule field 'pack' must say none or block for lhs or rhs}}
#s = #kernel.schedule<pack = {lhs = 3}>

// -----

kernel.func @f(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>, %M: index, %K: index, %err: memref<i64>) domain(m = %M, k = %K) outs(%y) {
  %a = kernel.contract over(m, k) by(k) : !kernel.val<f32, [m]> lhs {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    // expected-error @below {{map must have 2 dims and 0 symbols, has 1 and 0}}
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [m]>, memref<?xf32, strided<[1]>>
}
