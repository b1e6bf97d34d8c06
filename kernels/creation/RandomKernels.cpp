// Random ops. Element i of a call is a function of (seed, first counter block, i): see runtime/scalar/Philox.h.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Philox.h"
#include <cmath>
#include <numeric>
#include <vector>

namespace dlc::kernels {
namespace {

/// The counters of one call on n elements.
struct Stream {
  Stream(Generator *given, int64_t n) {
    Generator &g = given ? *given : defaultGenerator();
    seed = static_cast<int64_t>(g.seed());
    offset = static_cast<int64_t>(g.take(static_cast<uint64_t>(n + 3) / 4));
  }
  int64_t seed, offset;
  int64_t bits(int64_t i) const {
    scalar::NativeBuilder b;
    return scalar::philox_bits_(b, seed, offset, i);
  }
};

constexpr int64_t kRun = 1024; // elements generated at a time; a multiple of 4

/// The words of the blocks of elements [begin, begin + n), begin being a multiple of 4: word j of block k at [j][k].
void wordsOfRun(const Stream &s, int64_t begin, int64_t n, float (&unit)[4][kRun / 4]) {
  int64_t blocks = (n + 3) / 4, first = s.offset + begin / 4;
#pragma clang loop vectorize(enable)
  for (int64_t k = 0; k < blocks; ++k) {
    scalar::NativeBuilder b;
    auto block = scalar::philox(b, s.seed, first + k);
    unit[0][k] = scalar::unitFromBits(b, block.word[0]);
    unit[1][k] = scalar::unitFromBits(b, block.word[1]);
    unit[2][k] = scalar::unitFromBits(b, block.word[2]);
    unit[3][k] = scalar::unitFromBits(b, block.word[3]);
  }
}

/// Fills `tile`, which has room for whole blocks, with the uniform numbers of elements [begin, begin + n).
void uniformRun(const Stream &s, int64_t begin, int64_t n, float *tile) {
  float unit[4][kRun / 4];
  wordsOfRun(s, begin, n, unit);
  for (int64_t k = 0; k < (n + 3) / 4; ++k)
    for (int j = 0; j < 4; ++j)
      tile[4 * k + j] = unit[j][k];
}

/// The same of normal numbers: philox_normal_ with the block computed once for its four elements.
void normalRun(const Stream &s, int64_t begin, int64_t n, float *tile) {
  float unit[4][kRun / 4], even[2][kRun / 4], odd[2][kRun / 4];
  wordsOfRun(s, begin, n, unit);
  int64_t blocks = (n + 3) / 4;
  for (int pair = 0; pair < 2; ++pair)
#pragma clang loop vectorize(enable)
    for (int64_t k = 0; k < blocks; ++k) {
      scalar::NativeBuilder b;
      even[pair][k] = scalar::normalFromUnits(b, unit[2 * pair][k], unit[2 * pair + 1][k]);
      odd[pair][k] = scalar::normalFromUnits(b, unit[2 * pair][k], unit[2 * pair + 1][k] - 0.25f);
    }
  for (int64_t k = 0; k < blocks; ++k)
    for (int pair = 0; pair < 2; ++pair) {
      tile[4 * k + 2 * pair] = even[pair][k];
      tile[4 * k + 2 * pair + 1] = odd[pair][k];
    }
}

/// out[i] = finish(number i, i) in f32, converted to out's dtype; `run` generates the numbers.
template <class Run, class Finish> void fillRandom(const Stream &s, const Tensor &out, Run run, Finish finish) {
  ContiguousOut result(out, out.dtype());
  int64_t n = out.numel(), bytes = static_cast<int64_t>(itemSize(out.dtype()));
  ConvertFn store = convertFn(DType::F32, out.dtype());
  char *to = static_cast<char *>(result.get().data());
  parallelFor((n + kRun - 1) / kRun, 2, [&](int64_t b, int64_t e) {
    float tile[kRun];
    for (int64_t k = b; k < e; ++k) {
      int64_t begin = k * kRun, count = std::min(kRun, n - begin);
      run(s, begin, count, tile);
      finish(tile, begin, count);
      store(reinterpret_cast<const char *>(tile), 4, to + begin * bytes, bytes, count);
    }
  });
  result.commit();
}
constexpr auto kAsIs = [](float *, int64_t, int64_t) {};

} // namespace

void randKernel(const RandArgs<Tensor> &args, Span<Tensor> outs) {
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], uniformRun, kAsIs);
}
void randLikeKernel(const RandLikeArgs<Tensor> &args, Span<Tensor> outs) {
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], uniformRun, kAsIs);
}
void randnKernel(const RandnArgs<Tensor> &args, Span<Tensor> outs) {
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], normalRun, kAsIs);
}
void randnLikeKernel(const RandnLikeArgs<Tensor> &args, Span<Tensor> outs) {
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], normalRun, kAsIs);
}

void uniformKernel(const UniformArgs<Tensor> &args, Span<Tensor> outs) {
  float from = args.from.as<float>(), width = args.to.as<float>() - from;
  DLC_REQUIRE(width >= 0, Runtime, "uniform_: `from` is ", args.from, " and `to` is ", args.to,
              "\nuse a `to` that is not below `from`");
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], uniformRun, [=](float *tile, int64_t, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      tile[i] = tile[i] * width + from;
  });
}

void normalKernel(const NormalArgs<Tensor> &args, Span<Tensor> outs) {
  float mean = args.mean.as<float>(), std = args.std.as<float>();
  DLC_REQUIRE(std >= 0, Runtime, "normal_: `std` is ", args.std,
              ", but a deviation is not negative\nuse a `std` of at least 0");
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], normalRun, [=](float *tile, int64_t, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      tile[i] = tile[i] * std + mean;
  });
}

void bernoulliKernel(const BernoulliArgs<Tensor> &args, Span<Tensor> outs) {
  Tensor p = asContiguous(args.self, DType::F32);
  const float *prob = p.dataAs<float>();
  for (int64_t i = 0, n = p.numel(); i < n; ++i)
    DLC_REQUIRE(prob[i] >= 0 && prob[i] <= 1, Runtime, "bernoulli: probability ", prob[i],
                " in `self` is outside [0, 1]", "\nGive probabilities from 0 to 1.");
  fillRandom(Stream(args.generator, outs[0].numel()), outs[0], uniformRun, [=](float *tile, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      tile[i] = tile[i] < prob[begin + i] ? 1.0f : 0.0f;
  });
}

void randintKernel(const RandintArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t low = args.low.value(), high = args.high.value();
  DLC_REQUIRE(low < high, Runtime, "randint: low = ", low, " is not below high = ", high, "\nGive low < high.");
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  bool wide = range > (1ull << 32);
  int64_t n = outs[0].numel();
  Stream s(args.generator, wide ? 2 * n : n);
  ContiguousOut result(outs[0], DType::I64);
  int64_t *p = result.data<int64_t>();
  parallelFor(n, 4096, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      uint64_t pick =
          wide ? ((static_cast<uint64_t>(s.bits(2 * i)) << 32) | static_cast<uint64_t>(s.bits(2 * i + 1))) % range
               : (static_cast<uint64_t>(s.bits(i)) * range) >> 32;
      p[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + pick);
    }
  });
  result.commit();
}

void randpermKernel(const RandpermArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t n = outs[0].numel();
  Stream s(args.generator, n);
  ContiguousOut result(outs[0], DType::I64);
  int64_t *p = result.data<int64_t>();
  std::iota(p, p + n, 0);
  for (int64_t i = n - 1; i > 0; --i) {
    uint64_t j = (static_cast<uint64_t>(s.bits(i)) * static_cast<uint64_t>(i + 1)) >> 32;
    std::swap(p[i], p[j]);
  }
  result.commit();
}

namespace {

/// `count` draws from the weights, by the uniform numbers first, first + 1, ...; without replacement a drawn weight
/// becomes 0.
void drawRow(const Stream &s, int64_t first, std::vector<double> weights, int64_t count, bool replacement,
             int64_t *to) {
  double total = 0;
  int64_t positive = 0;
  for (double w : weights) {
    DLC_REQUIRE(w >= 0 && std::isfinite(w), Runtime, "multinomial: probability ", w,
                " in `self` is negative, infinite or NaN", "\nGive finite probabilities from 0.");
    total += w;
    positive += w > 0;
  }
  DLC_REQUIRE(total > 0, Runtime,
              "multinomial: the probabilities of a row of `self` sum to 0\nGive at least one above 0.");
  DLC_REQUIRE(replacement || positive >= count, Runtime, "multinomial: cannot draw num_samples = ", count,
              " without replacement from ", positive, " positive probabilities\nDraw fewer, or with replacement=True.");
  for (int64_t k = 0; k < count; ++k) {
    scalar::NativeBuilder b;
    double at = static_cast<double>(scalar::philox_uniform_(b, s.seed, s.offset, first + k)) * total, sum = 0;
    int64_t pick = -1;
    for (size_t c = 0; c < weights.size() && (pick < 0 || sum <= at); ++c) {
      sum += weights[c];
      if (weights[c] > 0)
        pick = static_cast<int64_t>(c);
    }
    to[k] = pick;
    if (!replacement) {
      total -= weights[static_cast<size_t>(pick)];
      weights[static_cast<size_t>(pick)] = 0;
    }
  }
}

} // namespace

void multinomialKernel(const MultinomialArgs<Tensor> &args, Span<Tensor> outs) {
  Tensor w = asContiguous(args.self, DType::F64);
  int64_t classes = w.size(-1), rows = classes ? w.numel() / classes : 0, count = args.num_samples.value();
  Stream s(args.generator, rows * count);
  ContiguousOut result(outs[0], DType::I64);
  for (int64_t r = 0; r < rows; ++r) {
    const double *p = w.dataAs<double>() + r * classes;
    drawRow(s, r * count, std::vector<double>(p, p + classes), count, args.replacement,
            result.data<int64_t>() + r * count);
  }
  result.commit();
}

} // namespace dlc::kernels
