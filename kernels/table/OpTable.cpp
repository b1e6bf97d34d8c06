// The op table: records joined with their kernels. With DLC_NO_KERNELS, the table of tools that only infer shapes.
#include "runtime/op/Meta.h"
#include "runtime/op/Ops.h"
#include "runtime/rules/Boxed.h"

namespace dlc {
#include "runtime/op/OpParams.inc"

namespace kernels {
using namespace ops;
#include "runtime/op/KernelDecls.inc"
} // namespace kernels

namespace {
#ifdef DLC_NO_KERNELS
#define DLC_KERNEL_OF(cls) nullptr
#else
#define DLC_KERNEL(cls, fn)                                                                                            \
  void boxed##cls(Span<const Arg<Tensor>> args, Span<Tensor> outs) {                                                   \
    kernels::fn(ops::cls##Args<Tensor>::unpack(args), outs);                                                           \
  }
#include "runtime/op/KernelList.inc"
#undef DLC_KERNEL
#define DLC_KERNEL_OF(cls) boxed##cls
#endif

constexpr OpInfo kTable[] = {
#include "runtime/op/OpTable.inc"
};
} // namespace

Span<const OpInfo> opTable() { return kTable; }

} // namespace dlc
