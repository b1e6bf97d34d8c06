// Convolutions and their gradients as shares of the FMA peak of one core. Usage: bench-conv [rounds]
#include "kernels/lib/Conv.h"
#include "runtime/core/ThreadPool.h"
#include "tools/bench/Peak.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace dlc::kernels;
using namespace dlc::bench;

namespace {

struct Layer {
  const char *name;
  int batch, in, size, out, kernel, stride, pad, groups;
};

void run(const Layer &l, int rounds) {
  ConvShape s;
  s.batch = l.batch, s.inChannels = l.in, s.height = s.width = l.size, s.outChannels = l.out;
  s.kernelHeight = s.kernelWidth = l.kernel, s.strideHeight = s.strideWidth = l.stride;
  s.padTop = s.padLeft = l.pad, s.groups = l.groups;
  setConvOutputSize(s);
  std::vector<float> x(s.batch * s.inChannels * s.inPlane(), 0.5f), w(s.outChannels * s.taps(), 0.25f),
      y(s.batch * s.outChannels * s.outPlane(), 0.1f), dx(x.size()), dw(w.size());
  double flops = 2.0 * double(y.size()) * double(s.taps()), forward = 1e9, input = 1e9, weight = 1e9, top = 0;
  for (int r = 0; r < rounds; ++r) {
    top = std::max(top, peak());
    timed(forward, flops, [&] { convForward<float>(s, x.data(), w.data(), nullptr, y.data()); });
    timed(input, flops, [&] { convBackwardInput<float>(s, y.data(), w.data(), dx.data()); });
    timed(weight, flops, [&] { convBackwardWeight<float>(s, x.data(), y.data(), dw.data()); });
  }
  auto rate = [&](double t) { return flops / t * 1e-9; };
  std::printf("%-22s %3d x %4d @%3d -> %4d k%d s%d g%-3d | %6.1f %4.2f | %6.1f %4.2f | %6.1f %4.2f\n", l.name, l.batch,
              l.in, l.size, l.out, l.kernel, l.stride, l.groups, rate(forward), rate(forward) / top, rate(input),
              rate(input) / top, rate(weight), rate(weight) / top);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  dlc::setNumThreads(1);
  std::printf("float32, one core, %s; GFLOP/s and share of the FMA peak: forward | gradient of input | of weight\n",
              gemmIsa());
  for (const Layer &l : std::initializer_list<Layer>{{"digits, first", 64, 1, 8, 16, 3, 1, 1, 1},
                                                     {"digits, second", 64, 16, 8, 32, 3, 1, 1, 1},
                                                     {"digits, third", 64, 32, 4, 64, 3, 1, 1, 1},
                                                     {"stem", 1, 3, 224, 64, 7, 2, 3, 1},
                                                     {"3x3", 1, 64, 56, 64, 3, 1, 1, 1},
                                                     {"3x3", 1, 128, 28, 128, 3, 1, 1, 1},
                                                     {"3x3", 1, 512, 7, 512, 3, 1, 1, 1},
                                                     {"3x3 stride 2", 1, 64, 56, 128, 3, 2, 1, 1},
                                                     {"1x1", 1, 256, 56, 64, 1, 1, 0, 1},
                                                     {"depthwise", 1, 96, 28, 96, 3, 1, 1, 96}})
    run(l, rounds);
}
