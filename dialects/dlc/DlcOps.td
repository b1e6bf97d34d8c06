// Ops of the `dlc` dialect that are no tensor programs of the user: what the phases between capture and code need.
#ifndef DLC_OPS
#define DLC_OPS

include "OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Dlc_NoneOp : Op<Dlc_Dialect, "none", [Pure]> {
  let summary = "The absent entry of a list of tensors, as in `x[:, i]`.";
  let results = (outs NoneType:$out);
  let assemblyFormat = "attr-dict `:` type($out)";
}

def Dlc_LaunchOp : Op<Dlc_Dialect, "launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel: its inputs, then sizes and scalars; the results are the kernel's outputs.";
  let description = [{
    Arguments are in the order of the kernel's: tensors first, then `index`, `i64` and `f64` scalars. A result's type gives the sizes
    of the output buffer. Buffers appear when the plan is made.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outs)";
}

#endif
