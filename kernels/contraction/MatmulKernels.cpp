// Matrix products: thin covers of kernels/lib/Gemm.h, which takes any strides.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/lib/Gemm.h"

namespace dlc::kernels {
namespace {

/// out = alpha * a @ b + beta * out over the last two dimensions; dimension 0 of 3-d operands is the batch.
void product(const Tensor &a, const Tensor &b, const Tensor &out, const Number &alpha, const Number &beta) {
  int64_t batch = out.dim() == 3 ? out.size(0) : 1;
  visitDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented,
           "matmul: not implemented for bool\nCast the operands to an integer or float dtype.");
    } else {
      using Acc = GemmAcc<T>;
      GemmArgs<T> g;
      g.m = out.size(-2), g.n = out.size(-1), g.k = a.size(-1);
      g.a = a.dataAs<T>(), g.aRow = a.stride(-2), g.aCol = a.stride(-1);
      g.b = b.dataAs<T>(), g.bRow = b.stride(-2), g.bCol = b.stride(-1);
      g.c = out.dataAs<T>(), g.cRow = out.stride(-2), g.cCol = out.stride(-1);
      g.alpha = alpha.as<Acc>(), g.beta = beta.as<Acc>();
      g.batch = batch;
      if (batch > 1)
        g.aBatch = a.stride(0), g.bBatch = b.stride(0), g.cBatch = out.stride(0);
      gemmParallel(g);
    }
  });
}

/// Operands in out's dtype (an `out=` of another dtype gets a temporary).
void matrixProduct(const Tensor &a, const Tensor &b, const Tensor &out) {
  if (out.numel() == 0)
    return;
  if (out.dtype() == a.dtype())
    return product(a, b, out, 1, 0);
  Tensor own = Tensor::empty(out.sizes(), a.dtype());
  product(a, b, own, 1, 0);
  copyInto(out, own);
}

void addProduct(const Tensor &self, const Tensor &a, const Tensor &b, const Number &beta, const Number &alpha,
                const Tensor &out) {
  if (out.numel() == 0)
    return;
  // beta = 0 ignores self, NaN included.
  bool reads = beta.toDouble() != 0;
  if (reads)
    copyUnlessSame(out, self);
  product(a, b, out, alpha, reads ? beta : Number(0));
}

} // namespace

void mmKernel(const MmArgs<Tensor> &args, Span<Tensor> outs) { matrixProduct(args.self, args.mat2, outs[0]); }
void bmmKernel(const BmmArgs<Tensor> &args, Span<Tensor> outs) { matrixProduct(args.self, args.mat2, outs[0]); }
void addmmKernel(const AddmmArgs<Tensor> &args, Span<Tensor> outs) {
  addProduct(args.self, args.mat1, args.mat2, args.beta, args.alpha, outs[0]);
}
void baddbmmKernel(const BaddbmmArgs<Tensor> &args, Span<Tensor> outs) {
  addProduct(args.self, args.batch1, args.batch2, args.beta, args.alpha, outs[0]);
}

} // namespace dlc::kernels
