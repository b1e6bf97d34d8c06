// Compiles @main of a .mlir file and runs it on random or given data: prints results, compares with the eager kernels
// run op by op, counts steps, measures.
#include "Npy.h"
#include "compiler/graph/Layouts.h"
#include "compiler/pipeline/Pipelines.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>
#include <map>
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::compiler;
namespace cl = llvm::cl;

static cl::opt<std::string> file(cl::Positional, cl::desc("<file.mlir>"), cl::init("-"));
static cl::list<std::string> npys("input", cl::desc("index=file.npy: data of an input"));
static cl::list<int64_t> symbolValues("symbols", cl::CommaSeparated,
                                      cl::desc("values of the symbols (default: the hints)"));
static cl::list<double> numberValues("numbers", cl::CommaSeparated,
                                     cl::desc("values of the number operands (default: 0.5, 1)"));
static cl::opt<unsigned> seed("seed", cl::desc("of random inputs"), cl::init(0));
static cl::opt<int64_t> intMax("int-max", cl::desc("random integers are below this"), cl::init(4));
static cl::opt<bool> compare("compare", cl::desc("compare with the eager kernels op by op; exit 1 on a difference"));
static cl::opt<double> rtol("rtol", cl::desc("allowed difference for --compare"), cl::init(2e-5));
static cl::opt<bool> steps("steps", cl::desc("print the steps and counts"));
static cl::opt<bool> json("json", cl::desc("print the steps as JSON"));
static cl::opt<bool> quiet("quiet", cl::desc("do not print the results"));
static cl::opt<bool> noFuse("no-fuse", cl::desc("one kernel an op"));
static cl::opt<int> repeat("repeat", cl::desc("measure this many runs"), cl::init(0));
static cl::opt<bool> profile("profile", cl::desc("with --repeat: the time of each kind of step"));
static cl::opt<std::string> outFile("output", cl::desc("prefix: write result k to <prefix>k.npy"));

namespace {

struct Data {
  std::vector<Tensor> inputs;
  std::vector<Number> numbers;
  std::vector<int64_t> symbols;
};

void fillRandom(const Tensor &t, std::mt19937 &rng) {
  std::uniform_real_distribution<double> real(-1, 1);
  visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // The tensor owns a dense storage: fill all of it.
    int64_t n = static_cast<int64_t>(t.storage().bytes() / sizeof(T));
    for (int64_t i = 0; i < n; ++i)
      static_cast<T *>(t.storage().data())[i] = Number(real(rng)).as<T>();
    if constexpr (std::is_integral_v<T>)
      for (int64_t i = 0; i < n; ++i)
        static_cast<T *>(t.storage().data())[i] =
            static_cast<T>(rng() % static_cast<unsigned>(std::is_same_v<T, bool> ? 2 : intMax.getValue()));
  });
}

Data makeData(func::FuncOp func) {
  Data d;
  Symbols symbols(func);
  d.symbols = symbols.hints().vec();
  for (size_t i = 0; i < symbolValues.size() && i < d.symbols.size(); ++i)
    d.symbols[i] = symbolValues[static_cast<unsigned>(i)];
  std::mt19937 rng(seed);
  for (BlockArgument arg : func.getArguments()) {
    if (!isa<RankedTensorType>(arg.getType())) {
      if (!arg.getType().isIndex()) {
        size_t k = d.numbers.size();
        double v = k < numberValues.size() ? numberValues[static_cast<unsigned>(k)] : arg.getType().isF64() ? 0.5 : 1;
        d.numbers.push_back(arg.getType().isF64()        ? Number(v)
                            : arg.getType().isInteger(1) ? Number(v != 0)
                                                         : Number(static_cast<int64_t>(v)));
      }
      continue;
    }
    Sizes sizes, strides;
    for (const Dim &s : symbols.sizes(arg))
      sizes.push_back(evaluate(s, Ints(d.symbols)));
    strides = contiguousStrides(Ints(sizes));
    if (auto map = func.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "dlc.strides")) {
      strides.clear();
      for (const Dim &s : symbols.dims(map.getValue()))
        strides.push_back(evaluate(s, Ints(d.symbols)));
    }
    d.inputs.push_back(Tensor::emptyStrided(Ints(sizes), Ints(strides), dtypeOf(arg)));
    fillRandom(d.inputs.back(), rng);
  }
  for (const std::string &text : npys) {
    size_t at = text.find('='), k = at == std::string::npos ? d.inputs.size() : std::stoul(text.substr(0, at));
    DLC_REQUIRE(k < d.inputs.size(), Value, "--input ", text, ": want index=file.npy with an index below ",
                d.inputs.size());
    d.inputs[k] = readNpy(text.substr(at + 1));
  }
  return d;
}

Tensor copyOf(const Tensor &t) {
  Tensor c = Tensor::emptyStrided(Ints(t.sizes()), Ints(t.strides()), t.dtype());
  if (c.storage().bytes())
    std::memcpy(c.storage().data(), static_cast<char *>(t.data()), c.storage().bytes());
  return c;
}

/// Calls f(element as double) in row-major order.
template <class F> void forEach(const Tensor &t, F &&f) {
  visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = t.numel();
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = t.sizes().size(); d-- > 0;) {
        at += rest % t.sizes()[d] * t.strides()[d];
        rest /= t.sizes()[d];
      }
      f(static_cast<double>(static_cast<T *>(t.data())[at]));
    }
  });
}

std::vector<double> elements(const Tensor &t) {
  std::vector<double> v;
  forEach(t, [&](double x) { v.push_back(x); });
  return v;
}

void print(size_t k, const Tensor &t) {
  std::ostringstream os;
  os << "result " << k << ": " << describe(t) << " = [";
  size_t i = 0;
  forEach(t, [&](double x) {
    if (i < 64)
      os << (i ? ", " : "") << x;
    ++i;
  });
  os << (i > 64 ? ", ...]" : "]");
  llvm::outs() << os.str() << '\n';
}

/// The largest difference relative to the size of the reference; infinity if NaN or infinities differ.
double difference(const Tensor &a, const Tensor &b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype())
    return INFINITY;
  std::vector<double> x = elements(a), y = elements(b);
  double scale = 1, worst = 0;
  for (double v : y)
    if (std::isfinite(v))
      scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))))
      worst = std::max(worst, std::isfinite(x[i]) && std::isfinite(y[i]) ? std::fabs(x[i] - y[i]) / scale : INFINITY);
  return worst;
}

/// Steps of one name together, dearest first.
void printProfile(const Executable &e, const Data &d) {
  std::vector<double> seconds; // the best of each step: other work shares the machine
  std::vector<Tensor> outs;
  for (int i = 0; i < repeat; ++i) {
    std::vector<double> once;
    e.plan().run(Span<const Tensor>(d.inputs), Span<const Number>(d.numbers), Ints(d.symbols), outs, &once);
    seconds.resize(once.size(), INFINITY);
    for (size_t k = 0; k < once.size(); ++k)
      seconds[k] = std::min(seconds[k], once[k]);
  }
  std::map<std::string, std::pair<double, int>> byName;
  for (size_t i = 0; i < seconds.size(); ++i) {
    auto &[sum, count] = byName[e.plan().infos()[i].name];
    sum += seconds[i] * 1e6;
    ++count;
  }
  std::vector<std::pair<double, std::string>> order;
  for (auto &[name, entry] : byName)
    order.push_back({entry.first, name});
  std::sort(order.rbegin(), order.rend());
  for (auto &[us, name] : order)
    llvm::outs() << llvm::format("%10.1f us  %3d x  ", us, byName[name].second) << name << '\n';
}

int run(ModuleOp module) {
  OwningOpRef<ModuleOp> reference = module.clone();
  CompileOptions options = CompileOptions::fromKnobs();
  options.fuse &= !noFuse;
  std::shared_ptr<Executable> e = compileModule(module, options);
  Data d = makeData(module.lookupSymbol<func::FuncOp>("main")), original;
  for (const Tensor &t : d.inputs)
    original.inputs.push_back(copyOf(t));
  std::vector<Tensor> outs;
  e->run(Span<const Tensor>(d.inputs), Span<const Number>(d.numbers), Ints(d.symbols), outs);
  if (steps)
    llvm::outs() << e->describe();
  if (json)
    llvm::outs() << e->json() << '\n';
  for (size_t k = 0; k < outs.size() && !quiet; ++k)
    print(k, outs[k]);
  for (size_t k = 0; k < outs.size() && !outFile.empty(); ++k)
    writeNpy(outFile + std::to_string(k) + ".npy", outs[k]);
  int worst = 0;
  if (compare) {
    std::vector<Tensor> expected;
    compileReference(*reference)
        ->run(Span<const Tensor>(original.inputs), Span<const Number>(d.numbers), Ints(d.symbols), expected);
    for (size_t k = 0; k < outs.size(); ++k) {
      double diff = difference(outs[k], expected[k]);
      bool ok = diff <= (isFloat(outs[k].dtype()) ? rtol.getValue() : 0);
      if (!ok)
        print(k, expected[k]);
      llvm::outs() << "compare " << k << ": " << (ok ? "equal" : "DIFFERENT") << (diff == 0 ? ", every bit" : "")
                   << '\n';
      if (!ok)
        llvm::outs() << "difference " << diff << '\n';
      worst |= !ok;
    }
  }
  if (repeat) {
    if (profile)
      printProfile(*e, d);
    double best = INFINITY;
    for (int i = 0; i < repeat; ++i) {
      auto start = std::chrono::steady_clock::now();
      e->run(Span<const Tensor>(d.inputs), Span<const Number>(d.numbers), Ints(d.symbols), outs);
      best =
          std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    llvm::outs() << "best of " << repeat << ": " << llvm::format("%.2f", best) << " us; compiled in "
                 << llvm::format("%.1f", e->stats().compileSeconds * 1e3) << " ms\n";
  }
  return worst;
}

} // namespace

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "compile and run a .mlir file of the dlc dialect\n");
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(file, context.get());
  if (!module)
    return 1;
  try {
    return run(*module);
  } catch (const Error &e) {
    llvm::errs() << "dlc-run: " << e.what() << '\n';
    return 1;
  }
}
