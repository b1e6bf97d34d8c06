// Fused optimizer steps over lists of tensors: one pass over parameter, gradient and state, split in equal chunks.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/reduce/Lanes.h"
#include "kernels/reduce/Reduce.h"
#include <cmath>
#include <vector>

namespace dlc::kernels {
namespace {

/// One tensor's operands in row-major order of one compute type; `commit` writes temporaries back.
template <class T, int N> struct Group {
  /// The tensors flagged in `written` are stored back; an undefined one is null.
  Group(std::array<Tensor, N> given, unsigned written)
      : given_(std::move(given)), written_(written), n(given_[0].numel()) {
    bool direct = true;
    for (int k = 0; k < N; ++k)
      direct &=
          !given_[k].defined() || (given_[k].dtype() == dtypeOfType<T> && given_[k].strides() == given_[0].strides());
    // Equal dense layouts need no common order.
    direct &= !given_[0].defined() || isDense(given_[0]);
    for (int k = 0; k < N; ++k) {
      if (!given_[k].defined())
        continue;
      work_[k] = direct ? given_[k] : copyOf(given_[k]);
      data[k] = work_[k].template dataAs<T>();
    }
    copied_ = !direct;
  }
  void commit() const {
    for (int k = 0; copied_ && k < N; ++k)
      if (given_[k].defined() && (written_ >> k & 1))
        copyInto(given_[k], work_[k]);
  }
  T *data[N] = {};

private:
  static Tensor copyOf(const Tensor &t) {
    Tensor c = Tensor::empty(t.sizes(), dtypeOfType<T>);
    copyInto(c, t);
    return c;
  }
  static bool isDense(const Tensor &t) {
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d)
      last += (t.size(d) - 1) * t.stride(d);
    return t.numel() == 0 || (last + 1 == t.numel() && t.isNonOverlapping());
  }
  std::array<Tensor, N> given_, work_;
  unsigned written_;
  bool copied_ = false;

public:
  int64_t n;
};

/// Calls f(group, begin, end) over all elements of all groups.
template <class G, class F> void forEachChunk(const std::vector<G> &groups, F f) {
  constexpr int64_t kChunk = 8192;
  std::vector<int64_t> firstChunk = {0};
  for (const G &g : groups)
    firstChunk.push_back(firstChunk.back() + (g.n + kChunk - 1) / kChunk);
  parallelFor(firstChunk.back(), 2, [&](int64_t b, int64_t e) {
    size_t k = static_cast<size_t>(std::upper_bound(firstChunk.begin(), firstChunk.end(), b) - firstChunk.begin()) - 1;
    for (int64_t c = b; c < e; ++c) {
      while (c >= firstChunk[k + 1])
        ++k;
      int64_t at = (c - firstChunk[k]) * kChunk;
      f(groups[k], at, std::min(groups[k].n, at + kChunk));
    }
  });
}

/// Runs `body(TypeTag<T>, indices)` for the parameters of each compute type.
template <class F> void byType(Span<const Tensor> params, F body) {
  std::vector<size_t> f32, f64;
  for (size_t i = 0; i < params.size(); ++i)
    (params[i].dtype() == DType::F64 ? f64 : f32).push_back(i);
  if (!f32.empty())
    body(TypeTag<float>{}, f32);
  if (!f64.empty())
    body(TypeTag<double>{}, f64);
}

} // namespace

void sgdStepKernel(const SgdStepArgs<Tensor> &args, Span<Tensor>) {
  bool hasMomentum = args.momentum_buffers.size() == args.params.size() && !args.params.empty();
  byType(args.params, [&](auto tag, const std::vector<size_t> &which) {
    using T = typename decltype(tag)::type;
    std::vector<Group<T, 3>> groups;
    for (size_t i : which)
      groups.emplace_back(
          std::array<Tensor, 3>{args.params[i], args.grads[i], hasMomentum ? args.momentum_buffers[i] : Tensor()},
          0b101u);
    T lr = args.lr.as<T>(), momentum = args.momentum.as<T>(), keep = T(1) - args.dampening.as<T>(),
      decay = args.weight_decay.as<T>();
    T sign = args.maximize ? T(-1) : T(1);
    forEachChunk(groups, [&](const Group<T, 3> &g, int64_t b, int64_t e) {
      T *p = g.data[0], *buf = g.data[2];
      const T *grad = g.data[1];
      if (!buf) {
#pragma clang loop vectorize(assume_safety)
        for (int64_t i = b; i < e; ++i)
          p[i] -= lr * (sign * grad[i] + decay * p[i]);
        return;
      }
      T ahead = args.nesterov ? T(1) : T(0);
#pragma clang loop vectorize(assume_safety)
      for (int64_t i = b; i < e; ++i) {
        T d = sign * grad[i] + decay * p[i];
        T m = momentum * buf[i] + keep * d;
        buf[i] = m;
        p[i] -= lr * (ahead != T(0) ? d + momentum * m : m);
      }
    });
    for (auto &g : groups)
      g.commit();
  });
}

void adamStepKernel(const AdamStepArgs<Tensor> &args, Span<Tensor>) {
  double step = args.step.item().toDouble() + 1, beta1 = args.beta1.toDouble(), beta2 = args.beta2.toDouble(),
         lr = args.lr.toDouble();
  fillWith(args.step, Number(step));
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  byType(args.params, [&](auto tag, const std::vector<size_t> &which) {
    using T = typename decltype(tag)::type;
    std::vector<Group<T, 4>> groups;
    for (size_t i : which)
      groups.emplace_back(std::array<Tensor, 4>{args.params[i], args.grads[i], args.exp_avgs[i], args.exp_avg_sqs[i]},
                          0b1101u);
    T decay = args.weight_decay.as<T>(), eps = args.eps.as<T>(), sign = args.maximize ? T(-1) : T(1);
    T shrink = args.decoupled ? static_cast<T>(1 - lr * args.weight_decay.toDouble()) : T(1),
      coupled = args.decoupled ? T(0) : decay;
    T b2 = static_cast<T>(beta2), c1 = static_cast<T>(1 - beta1), c2 = static_cast<T>(1 - beta2);
    T rate = static_cast<T>(lr / correction1), root2 = static_cast<T>(std::sqrt(correction2));
    forEachChunk(groups, [&](const Group<T, 4> &g, int64_t b, int64_t e) {
      T *p = g.data[0], *m = g.data[2], *v = g.data[3];
      const T *grad = g.data[1];
#pragma clang loop vectorize(assume_safety)
      for (int64_t i = b; i < e; ++i) {
        T x = p[i] * shrink;
        T d = sign * grad[i] + coupled * x;
        T mean = m[i] + (d - m[i]) * c1;
        T square = v[i] * b2 + d * d * c2;
        m[i] = mean;
        v[i] = square;
        p[i] = x - rate * (mean / (std::sqrt(square) / root2 + eps));
      }
    });
    for (auto &g : groups)
      g.commit();
  });
}

void totalNormKernel(const TotalNormArgs<Tensor> &args, Span<Tensor> outs) {
  double p = args.norm_type, total = 0;
  for (const Tensor &t : args.tensors) {
    Tensor x = asContiguous(t, computeType(t.dtype()));
    visitFloat(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *v = x.dataAs<T>();
      constexpr int64_t kPiece = 65536;
      int64_t n = x.numel(), pieces = (n + kPiece - 1) / kPiece;
      std::vector<double> partial(static_cast<size_t>(pieces));
      parallelFor(pieces, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const T *from = v + k * kPiece;
          int64_t count = std::min(kPiece, n - k * kPiece);
          Lanes<T, SumCombine> lanes;
          Lanes<T, MaxCombine> most;
          if (std::isinf(p)) {
            std::vector<T> magnitude(from, from + count);
            for (T &y : magnitude)
              y = std::fabs(y);
            most.add(magnitude.data(), count);
          } else if (p == 2) {
            lanes.add(from, count, [](auto y) { return y * y; });
          } else {
            std::vector<T> power(from, from + count);
            for (T &y : power)
              y = static_cast<T>(std::pow(std::fabs(y), p));
            lanes.add(power.data(), count);
          }
          partial[static_cast<size_t>(k)] = std::isinf(p) ? most.result() : lanes.result();
        }
      });
      for (double part : partial)
        total = std::isinf(p) ? (part > total || part != part ? part : total) : total + part;
    });
  }
  double norm = std::isinf(p) ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
  fillWith(outs[0], Number(norm));
}

void clipByNormKernel(const ClipByNormArgs<Tensor> &args, Span<Tensor>) {
  double coefficient = args.max_norm.toDouble() / (args.total_norm.item().toDouble() + 1e-6);
  coefficient = coefficient > 1 ? 1 : coefficient; // NaN stays
  byType(args.tensors, [&](auto tag, const std::vector<size_t> &which) {
    using T = typename decltype(tag)::type;
    std::vector<Group<T, 1>> groups;
    for (size_t i : which)
      groups.emplace_back(std::array<Tensor, 1>{args.tensors[i]}, 1u);
    T scale = static_cast<T>(coefficient);
    forEachChunk(groups, [&](const Group<T, 1> &g, int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        g.data[0][i] *= scale;
    });
    for (auto &g : groups)
      g.commit();
  });
}

} // namespace dlc::kernels
