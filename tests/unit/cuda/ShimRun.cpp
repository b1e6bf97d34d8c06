// cuda-shim-run a.mlir b.mlir ...: graphs of phase "captured" whose kernels run as CUDA text through the host shim, the
// other steps as usual, on random data, against the eager kernels op by op. All graphs share one compilation.
// Prints one line a graph; exit 1 if any differs.
#include "HostProgram.h"
#include "compiler/cuda/CudaEmitter.h"
#include "compiler/graph/Layouts.h"
#include "compiler/pipeline/BuildPlan.h"
#include "compiler/pipeline/Pipelines.h"
#include "dialects/kernel/KernelDialect.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::compiler;

namespace {

struct Graph {
  std::string file, failure;
  OwningOpRef<ModuleOp> module, reference;
};

struct Data {
  std::vector<Tensor> inputs;
  std::vector<Number> numbers;
  std::vector<int64_t> symbols;
};

/// Fills all of a dense storage; integers are `low` to 2, so that they can be indices.
void fillRandom(const Tensor &t, int low, std::mt19937 &rng) {
  std::uniform_real_distribution<double> real(-1, 1);
  visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *data = static_cast<T *>(t.storage().data());
    for (size_t i = 0; i < t.storage().bytes() / sizeof(T); ++i)
      if constexpr (std::is_same_v<T, bool>)
        data[i] = rng() % 2;
      else if constexpr (std::is_integral_v<T>)
        data[i] = static_cast<T>(low + rng() % (3 - low));
      else
        data[i] = Number(real(rng)).as<T>();
  });
}

Data makeData(func::FuncOp func, int low) {
  Data d;
  Symbols symbols(func);
  d.symbols = symbols.hints().vec();
  std::mt19937 rng(7);
  auto values = [&](const auto &dims) {
    Sizes out;
    for (const Dim &s : dims)
      out.push_back(evaluate(s, Ints(d.symbols)));
    return out;
  };
  for (BlockArgument arg : func.getArguments()) {
    Type type = arg.getType();
    if (type.isF64())
      d.numbers.push_back(Number(0.5));
    else if (type.isInteger(1))
      d.numbers.push_back(Number(true));
    else if (type.isInteger(64))
      d.numbers.push_back(Number(int64_t(1)));
    if (!isa<RankedTensorType>(type))
      continue;
    Sizes sizes = values(symbols.sizes(arg)), strides = contiguousStrides(Ints(sizes));
    if (auto map = func.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "dlc.strides"))
      strides = values(symbols.dims(map.getValue()));
    d.inputs.push_back(Tensor::emptyStrided(Ints(sizes), Ints(strides), dtypeOf(arg)));
    fillRandom(d.inputs.back(), low, rng);
  }
  return d;
}

Tensor copyOf(const Tensor &t) {
  Tensor c = Tensor::emptyStrided(Ints(t.sizes()), Ints(t.strides()), t.dtype());
  if (c.storage().bytes())
    std::memcpy(c.storage().data(), t.data(), c.storage().bytes());
  return c;
}

std::vector<double> elements(const Tensor &t) {
  std::vector<double> out;
  visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = t.sizes().size(); d-- > 0; rest /= t.sizes()[d])
        at += rest % t.sizes()[d] * t.strides()[d];
      out.push_back(static_cast<double>(static_cast<T *>(t.data())[at]));
    }
  });
  return out;
}

/// Largest difference relative to the largest value; infinity where NaN, infinities or types differ.
double difference(const Tensor &a, const Tensor &b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype())
    return INFINITY;
  std::vector<double> x = elements(a), y = elements(b);
  double scale = 1, worst = 0;
  for (double v : y)
    if (std::isfinite(v))
      scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i])))
      worst = std::max(worst, std::isfinite(x[i]) && std::isfinite(y[i]) ? std::fabs(x[i] - y[i]) / scale : INFINITY);
  return worst;
}

double toleranceOf(DType dtype) {
  return dtype == DType::F16 ? 2e-3 : dtype == DType::BF16 ? 2e-2 : dtype == DType::F64 ? 1e-12 : 2e-5;
}

struct Outcome {
  std::vector<Tensor> tensors; ///< results, then inputs, which a graph may write
  std::string error;
};

Outcome runOn(const Executable &e, const Data &d) {
  Outcome out;
  std::vector<Tensor> inputs;
  for (const Tensor &t : d.inputs)
    inputs.push_back(copyOf(t));
  try {
    e.run(Span<const Tensor>(inputs), Span<const Number>(d.numbers), Ints(d.symbols), out.tensors);
  } catch (const Error &error) {
    out.error = str("raises ", static_cast<int>(error.kind()));
  }
  out.tensors.insert(out.tensors.end(), inputs.begin(), inputs.end());
  return out;
}

/// The worst difference over what its dtype allows; infinity if only one raises. `raised` counts errors of both.
double runBoth(const Executable &cuda, const Executable &eager, const Data &d, int &raised) {
  Outcome got = runOn(cuda, d), want = runOn(eager, d);
  if (got.error != want.error || got.tensors.size() != want.tensors.size()) {
    std::printf("CUDA: %s; eager: %s\n", got.error.c_str(), want.error.c_str());
    return INFINITY;
  }
  raised += !want.error.empty();
  double worst = 0;
  for (size_t i = 0; i < got.tensors.size() && want.error.empty(); ++i)
    worst = std::max(worst, difference(got.tensors[i], want.tensors[i]) / toleranceOf(want.tensors[i].dtype()));
  return worst;
}

class Runner {
public:
  Runner() {
    DialectRegistry registry;
    registerCompilerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
    all_ = ModuleOp::create(UnknownLoc::get(&context_));
  }

  void add(const std::string &file) {
    Graph graph;
    graph.file = file;
    graph.module = parseSourceFile<ModuleOp>(file, &context_);
    if (!graph.module)
      throw std::runtime_error(file + ": can't be read");
    graph.reference = graph.module->clone();
    try {
      CompileOptions options;
      options.contract = 0; // products are the library's on a GPU
      for (const char *phase : {"simplified", "fused"})
        runPhase(*graph.module, phase, options);
    } catch (const std::exception &e) {
      graph.failure = e.what();
    }
    std::string prefix = "g" + std::to_string(graphs_.size()) + "_";
    for (auto kernel : graph.module->getOps<ir::kernel::FuncOp>()) {
      auto copy = kernel.clone();
      copy.setSymName(prefix + kernel.getSymName().str());
      all_->push_back(copy);
    }
    graphs_.push_back(std::move(graph));
  }

  int run() {
    FailureOr<CudaProgram> program = emitCuda(*all_);
    if (failed(program))
      return 1;
    std::vector<HostKernel> exports;
    std::string text = program->text;
    for (const CudaKernel &kernel : program->kernels)
      exports.push_back({kernel.name, kernel.threadsX, kernel.threadsY});
    HostProgram host(text, exports);
    int bad = 0;
    for (size_t i = 0; i < graphs_.size(); ++i)
      bad += !runOne(i, *program, host);
    std::printf("%zu graphs, %zu kernels, %d differ\n", graphs_.size(), program->kernels.size(), bad);
    return bad ? 1 : 0;
  }

private:
  bool runOne(size_t number, const CudaProgram &program, const HostProgram &host) {
    Graph &graph = graphs_[number];
    std::string prefix = "g" + std::to_string(number) + "_";
    llvm::StringMap<compiler::CompiledKernel> kernels;
    for (const CudaKernel &kernel : program.kernels) {
      if (kernel.symbol.rfind(prefix, 0) != 0)
        continue;
      compiler::CompiledKernel &compiled = kernels[kernel.symbol.substr(prefix.size())];
      compiled.fn = host.entry(kernel.name);
      compiled.info.name = kernel.name;
      compiled.info.numBufs = kernel.numBufs;
      compiled.info.numInts = kernel.numInts;
      compiled.info.outputs = kernel.outputs;
      compiled.info.mayShare = kernel.mayShare;
    }
    double worst = INFINITY;
    int raised = 0;
    try {
      if (!graph.failure.empty())
        throw std::runtime_error(graph.failure);
      ExecutableStats stats;
      auto func = graph.module->lookupSymbol<func::FuncOp>("main");
      std::vector<int64_t> hints = Symbols(func).hints().vec();
      Executable cuda(buildPlan(func, kernels, stats), stats, hints);
      std::shared_ptr<Executable> eager = compileReference(*graph.reference);
      worst = 0;
      for (int low : {0, 1}) // without zeros, divisions do not raise
        worst = std::max(worst, runBoth(cuda, *eager, makeData(func, low), raised));
    } catch (const std::exception &e) {
      std::printf("%s: %s\n", graph.file.c_str(), e.what());
    }
    std::printf("%s: %s (%u kernels, %.3g of the tolerance, %d runs raised)\n", graph.file.c_str(),
                worst <= 1 ? "equal" : "DIFFERENT", kernels.size(), worst, raised);
    return worst <= 1;
  }

  MLIRContext context_{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> all_;
  std::vector<Graph> graphs_;
};

} // namespace

int main(int argc, char **argv) {
  try {
    Runner runner;
    for (int i = 1; i < argc; ++i)
      runner.add(argv[i]);
    return runner.run();
  } catch (const std::exception &e) {
    std::fprintf(stderr, "cuda-shim-run: %s\n", e.what());
    return 1;
  }
}
