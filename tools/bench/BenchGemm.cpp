// Products against OpenBLAS and against the FMA peak of one core, all sides in one process and interleaved: the minimum
// of many rounds on the thread's CPU clock. Usage: bench-gemm [rounds]
#include "kernels/lib/Gemm.h"
#include "tools/bench/Peak.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" void cblas_sgemm(int order, int transA, int transB, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
extern "C" char *openblas_get_corename();

using namespace dlc::kernels;
using namespace dlc::bench;

namespace {

struct Shape {
  const char *name;
  int m, n, k;
  bool transA, transB;
};

void run(const Shape &s, int rounds) {
  int64_t m = s.m, n = s.n, k = s.k;
  std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f), c(m * n, 0.0f);
  GemmArgs<float> g;
  g.m = m, g.n = n, g.k = k, g.a = a.data(), g.b = b.data(), g.c = c.data(), g.cRow = n;
  g.aRow = s.transA ? 1 : k, g.aCol = s.transA ? m : 1, g.bRow = s.transB ? 1 : n, g.bCol = s.transB ? k : 1;
  PackedMatrix<float> packed(k, n, b.data(), g.bRow, g.bCol);
  GemmArgs<float> ready = g;
  ready.packedB = &packed;
  double flops = 2.0 * m * n * k, ours = 1e9, prepacked = 1e9, blas = 1e9, top = 0;
  for (int r = 0; r < rounds; ++r) {
    top = std::max(top, peak());
    timed(ours, flops, [&] { gemm(g); });
    timed(prepacked, flops, [&] { gemm(ready); });
    timed(blas, flops, [&] {
      cblas_sgemm(101, s.transA ? 112 : 111, s.transB ? 112 : 111, m, n, k, 1, a.data(), s.transA ? m : k, b.data(),
                  s.transB ? k : n, 0, c.data(), n);
    });
  }
  auto rate = [&](double t) { return flops / t * 1e-9; };
  std::printf("%-26s %5d %5d %5d %c%c | %6.1f %4.2f | %6.1f %4.2f | %6.1f %4.2f | %5.2fx\n", s.name, s.m, s.n, s.k,
              s.transA ? 'T' : 'N', s.transB ? 'T' : 'N', rate(ours), rate(ours) / top, rate(prepacked),
              rate(prepacked) / top, rate(blas), rate(blas) / top, blas / ours);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  std::printf("float32, one core, %s; OpenBLAS uses %s. GFLOP/s and share of the FMA peak (%.0f GFLOP/s)\n", gemmIsa(),
              openblas_get_corename(), peak());
  std::printf("%-26s %5s %5s %5s    | %11s | %11s | %11s | speed-up\n", "", "m", "n", "k", "dlc", "prepacked",
              "OpenBLAS");
  for (const Shape &s : std::initializer_list<Shape>{{"square", 64, 64, 64, false, false},
                                                     {"square", 256, 256, 256, false, false},
                                                     {"square", 1024, 1024, 1024, false, false},
                                                     {"square, B transposed", 1024, 1024, 1024, false, true},
                                                     {"linear forward", 64, 512, 784, false, true},
                                                     {"linear grad of input", 64, 784, 512, false, false},
                                                     {"linear grad of weight", 512, 784, 64, true, false},
                                                     {"encoder", 128, 1536, 384, false, true},
                                                     {"GPT qkv", 2048, 384, 128, false, true},
                                                     {"GPT weight gradient", 384, 128, 2048, true, false},
                                                     {"attention scores", 128, 128, 32, false, true},
                                                     {"attention values", 128, 32, 128, false, false},
                                                     {"LSTM step", 8, 512, 192, false, true},
                                                     {"LSTM step, row-major", 8, 512, 192, false, false},
                                                     {"MLP layer", 64, 128, 64, false, true},
                                                     {"MLP layer, row-major", 64, 128, 64, false, false},
                                                     {"MLP weight gradient", 64, 128, 64, true, false},
                                                     {"batch 16", 16, 512, 512, false, true},
                                                     {"batch 4", 4, 512, 512, false, true},
                                                     {"batch 4, short", 4, 512, 64, false, true},
                                                     {"ten classes", 64, 10, 128, false, true},
                                                     {"ten classes, gradient", 128, 10, 64, true, false},
                                                     {"vector x matrix", 1, 2048, 512, false, false},
                                                     {"vector x transposed", 1, 2048, 512, false, true},
                                                     {"matrix x vector", 2048, 1, 512, false, false},
                                                     {"long sum", 64, 64, 20000, true, false}})
    run(s, rounds);
}
