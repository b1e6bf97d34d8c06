// ORC with only what kernels need: an execution session, the object layer, a library of scalar C functions, and one
// JITDylib for each object, so that freeing one removes its code.
#include "compiler/cpu/Jit.h"
#include "runtime/scalar/NativeBuilder.h"

#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

using namespace llvm;
using namespace llvm::orc;

namespace dlc::compiler {

struct Jit::State {
  std::unique_ptr<ExecutionSession> session;
  std::unique_ptr<ObjectLinkingLayer> layer;
  JITDylib *library = nullptr;
  std::atomic<uint64_t> count{0};
};

// Memory of the thread for packed operands and partial sums: grows to what the largest kernel wants and stays. Kernels
// do not call kernels, so one piece is enough.
static void *kernelScratch(int64_t bytes) {
  struct Piece {
    void *data = nullptr;
    int64_t size = 0;
    ~Piece() { std::free(data); }
  };
  static thread_local Piece piece;
  if (bytes > piece.size) {
    constexpr int64_t kHuge = int64_t(2) << 20;
    int64_t page = bytes >= kHuge / 2 ? kHuge : 4096;
    std::free(piece.data);
    piece.size = (bytes + page - 1) / page * page;
    piece.data = std::aligned_alloc(page, piece.size);
    if (!piece.data)
      std::abort();
    if (page == kHuge)
      madvise(piece.data, piece.size, MADV_HUGEPAGE); // packed blocks would take most of the entries for small pages
  }
  return piece.data;
}

static int64_t integerPower(int64_t base, int64_t exponent) { return scalar::intPow(base, exponent); }

// Addresses of what a kernel may call. The functions are those that the eager kernels call.
static void addLibrary(ExecutionSession &session, SymbolMap &symbols) {
  auto add = [&](const char *name, auto *function) {
    symbols[session.intern(name)] = {ExecutorAddr::fromPtr(function),
                                     JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
#define DLC_UNARY(name)                                                                                                \
  add(#name, static_cast<double (*)(double)>(&::name));                                                                \
  add(#name "f", static_cast<float (*)(float)>(&::name##f))
#define DLC_BINARY(name)                                                                                               \
  add(#name, static_cast<double (*)(double, double)>(&::name));                                                        \
  add(#name "f", static_cast<float (*)(float, float)>(&::name##f))
  DLC_UNARY(exp);
  DLC_UNARY(exp2);
  DLC_UNARY(expm1);
  DLC_UNARY(log);
  DLC_UNARY(log2);
  DLC_UNARY(log10);
  DLC_UNARY(log1p);
  DLC_UNARY(sin);
  DLC_UNARY(cos);
  DLC_UNARY(tan);
  DLC_UNARY(asin);
  DLC_UNARY(acos);
  DLC_UNARY(atan);
  DLC_UNARY(sinh);
  DLC_UNARY(cosh);
  DLC_UNARY(tanh);
  DLC_UNARY(asinh);
  DLC_UNARY(acosh);
  DLC_UNARY(atanh);
  DLC_UNARY(erf);
  DLC_UNARY(erfc);
  DLC_UNARY(lgamma);
  DLC_UNARY(tgamma);
  DLC_UNARY(cbrt);
  DLC_UNARY(floor);
  DLC_UNARY(ceil);
  DLC_UNARY(trunc);
  DLC_UNARY(roundeven);
  DLC_UNARY(sqrt);
  DLC_BINARY(atan2);
  DLC_BINARY(pow);
  DLC_BINARY(fmod);
  DLC_BINARY(hypot);
  DLC_BINARY(nextafter);
#undef DLC_UNARY
#undef DLC_BINARY
  add("dlc_ipow", &integerPower);
  add("dlc_kernel_scratch", &kernelScratch);
  add("memset", &std::memset); // the code generator makes such calls of loops
  add("memcpy", static_cast<void *(*)(void *, const void *, size_t)>(&std::memcpy));
  add("memmove", static_cast<void *(*)(void *, const void *, size_t)>(&std::memmove));
}

Jit::Jit(std::unique_ptr<State> state) : state_(std::move(state)) {}
Jit::~Jit() = default;

struct JitHolder {
  static Expected<Jit *> create() {
    auto control = SelfExecutorProcessControl::Create();
    if (!control)
      return control.takeError();
    auto state = std::make_unique<Jit::State>();
    state->session = std::make_unique<ExecutionSession>(std::move(*control));
    state->session->setErrorReporter([](Error error) { consumeError(std::move(error)); }); // lookups return it too
    state->layer =
        std::make_unique<ObjectLinkingLayer>(*state->session, state->session->getExecutorProcessControl().getMemMgr());
    state->library = &state->session->createBareJITDylib("libm");
    SymbolMap symbols;
    addLibrary(*state->session, symbols);
    if (Error error = state->library->define(absoluteSymbols(std::move(symbols))))
      return std::move(error);
    // Never destroyed: kernels may outlive the static objects of the process.
    return new Jit(std::move(state));
  }
};

Expected<Jit *> Jit::get() {
  static std::mutex mutex;
  static Jit *jit = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (jit)
    return jit;
  Expected<Jit *> made = JitHolder::create();
  if (made)
    jit = *made;
  return made;
}

namespace {

class OrcObject final : public LinkedObject {
public:
  OrcObject(ExecutionSession &session, JITDylib &dylib) : session_(session), dylib_(dylib) {}
  ~OrcObject() override { consumeError(session_.removeJITDylib(dylib_)); }
  Expected<void *> lookup(StringRef symbol) override {
    Expected<ExecutorSymbolDef> found = session_.lookup({&dylib_}, symbol);
    if (!found)
      return found.takeError();
    return found->getAddress().toPtr<void *>();
  }

private:
  ExecutionSession &session_;
  JITDylib &dylib_;
};

} // namespace

Expected<std::shared_ptr<LinkedObject>> Jit::link(ArrayRef<char> object) {
  std::string name = "o" + std::to_string(state_->count++);
  JITDylib &dylib = state_->session->createBareJITDylib(name);
  auto result = std::make_shared<OrcObject>(*state_->session, dylib);
  dylib.addToLinkOrder(*state_->library);
  auto buffer = MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), name);
  if (Error error = state_->layer->add(dylib, std::move(buffer)))
    return std::move(error);
  return result;
}

} // namespace dlc::compiler
