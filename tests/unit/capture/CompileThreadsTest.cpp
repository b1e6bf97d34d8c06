// Compiled functions driven from many threads, with the interpreter as the compiler: one compilation a key, hits that
// go on meanwhile, background compilation, reset, forks. Run under ThreadSanitizer by ./dev tsan.
#include "frontend/compile/Background.h"
#include "frontend/compile/Compile.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/core/ForkSafe.h"
#include "runtime/op/Functional.h"
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dlc;

namespace {

/// A compiler that takes its time and counts, by the number of ops of the graph.
struct SlowCompiler {
  ForkMutex mutex;
  std::map<size_t, int> compilations;
  std::atomic<int> inside{0}, most{0};
  std::atomic<int> milliseconds{3};
  std::atomic<bool> fails{false};

  int total() {
    std::lock_guard<ForkMutex> lock(mutex);
    int n = 0;
    for (auto &[ops, count] : compilations)
      n += count;
    return n;
  }
  void clear() {
    std::lock_guard<ForkMutex> lock(mutex);
    compilations.clear();
    most = 0;
  }
};
SlowCompiler &compiler() {
  static auto *c = new SlowCompiler;
  return *c;
}

class Interpreted final : public CompiledGraph {
public:
  explicit Interpreted(const Graph &g) : graph_(g) {}
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    interpret(graph_, inputs, numbers, symbols, outs);
  }

private:
  Graph graph_;
};

std::shared_ptr<CompiledGraph> compileSlowly(const Graph &g, const BackendOptions &) {
  SlowCompiler &c = compiler();
  int now = ++c.inside;
  for (int most = c.most; now > most && !c.most.compare_exchange_weak(most, now);) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(c.milliseconds));
  {
    std::lock_guard<ForkMutex> lock(c.mutex);
    c.compilations[g.nodes.size()]++;
  }
  --c.inside;
  if (c.fails)
    fail(ErrorKind::Internal, "on purpose\nnothing to do");
  return std::make_shared<Interpreted>(g);
}

class CompileThreads : public testing::Test {
protected:
  void SetUp() override {
    setBackend(compileSlowly);
    compiler().clear();
    compiler().milliseconds = 3;
    compiler().fails = false;
    resetCompileStats();
  }
  void TearDown() override {
    EXPECT_TRUE(waitForBackground(20000));
    setBackend(nullptr);
  }
};

template <class F> void inThreads(int count, F body) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < count)
        std::this_thread::yield();
      body(i);
    });
  for (std::thread &t : threads)
    t.join();
}

/// `length` + 2 ops over n elements; the sum of ((1 + 1) * 1 ... ) is 2n.
double call(const Ref<CompiledFunction> &f, int64_t n, int length = 1) {
  Tensor x = Tensor::empty({n}, DType::F32);
  for (int64_t i = 0; i < n; ++i)
    x.dataAs<float>()[i] = 1;
  CompiledCall region(f);
  Tensor y = ops::add(x, x);
  for (int i = 0; i < length; ++i)
    y = ops::mul(y, x);
  y = ops::sum(y, Ints(), false);
  region.finish();
  return y.item().toDouble();
}

Ref<CompiledFunction> function(CompileOptions options = {}) {
  options.quiet = true;
  return makeRef<CompiledFunction>("test", options);
}

TEST_F(CompileThreads, OneCompilationAKey) {
  Ref<CompiledFunction> f = function();
  inThreads(32, [&](int) {
    for (int k = 0; k < 10; ++k)
      EXPECT_EQ(call(f, 8), 16);
  });
  EXPECT_EQ(compiler().total(), 1);
  EXPECT_EQ(compileStats().hits, 319);
}

TEST_F(CompileThreads, SizesThatVaryCompileTwice) {
  Ref<CompiledFunction> f = function();
  inThreads(32, [&](int i) {
    for (int64_t k = 0; k < 10; ++k)
      EXPECT_EQ(call(f, 2 + (i + k) % 9), 2 * (2 + (i + k) % 9));
  });
  EXPECT_EQ(compiler().total(), 2);
  EXPECT_EQ(f->numEntries(), 2u);
}

TEST_F(CompileThreads, DifferentProgramsCompileAtTheSameTime) {
  Ref<CompiledFunction> f = function();
  compiler().milliseconds = 50;
  inThreads(8, [&](int i) { EXPECT_EQ(call(f, 4, 1 + i % 4), 8); });
  EXPECT_EQ(compiler().total(), 4);
  EXPECT_GE(compiler().most, 2);
}

TEST_F(CompileThreads, HitsGoOnWhileAnotherProgramCompiles) {
  Ref<CompiledFunction> f = function();
  EXPECT_EQ(call(f, 4, 1), 8);
  compiler().milliseconds = 300;
  std::atomic<bool> done{false};
  std::thread slow([&] {
    EXPECT_EQ(call(f, 4, 2), 8);
    done = true;
  });
  int during = 0;
  while (!done) {
    EXPECT_EQ(call(f, 4, 1), 8);
    during += compiler().inside > 0;
  }
  slow.join();
  EXPECT_GT(during, 10);
}

TEST_F(CompileThreads, PrivateFunctions) {
  inThreads(16, [&](int i) {
    Ref<CompiledFunction> f = function();
    for (int64_t n : {3, 4, 5, 3})
      EXPECT_EQ(call(f, n + i), 2 * (n + i));
  });
  EXPECT_EQ(compiler().total(), 32);
}

TEST_F(CompileThreads, FailuresAreShared) {
  Ref<CompiledFunction> f = function();
  compiler().fails = true;
  inThreads(8, [&](int) { EXPECT_EQ(call(f, 4), 8); });
  EXPECT_EQ(compiler().total(), 1);
  EXPECT_EQ(compileStats().fallbacks, 8);
}

TEST_F(CompileThreads, InTheBackground) {
  CompileOptions options;
  options.background = true;
  Ref<CompiledFunction> f = function(options);
  compiler().milliseconds = 20;
  inThreads(16, [&](int i) {
    for (int64_t k = 0; k < 10; ++k)
      EXPECT_EQ(call(f, 4 + i % 2), 2 * (4 + i % 2));
  });
  ASSERT_TRUE(waitForBackground(20000));
  EXPECT_EQ(call(f, 4), 8);
  EXPECT_EQ(call(f, 5), 10);
  ASSERT_TRUE(waitForBackground(20000));
  EXPECT_EQ(compiler().total(), 2);
  EXPECT_EQ(compiler().most, 1);
}

TEST_F(CompileThreads, AFunctionThatDiesWithWorkInTheBackground) {
  CompileOptions options;
  options.background = true;
  inThreads(8, [&](int i) { EXPECT_EQ(call(function(options), 4 + i), 8 + 2 * i); });
  ASSERT_TRUE(waitForBackground(20000));
  EXPECT_EQ(compiler().total(), 8);
}

TEST_F(CompileThreads, ResetAndQueriesMeanwhile) {
  Ref<CompiledFunction> f = function();
  compiler().milliseconds = 0;
  std::atomic<int> running{6};
  inThreads(7, [&](int i) {
    if (i == 6) {
      for (; running > 0; resetCompiler()) {
        f->explain();
        f->explainJson();
        f->numEntries();
        f->events();
      }
      return;
    }
    for (int k = 0; k < 100; ++k)
      EXPECT_EQ(call(f, 3 + k % 4, 1 + k % 2), 2 * (3 + k % 4));
    --running;
  });
}

TEST_F(CompileThreads, ExceptionsEndTheMark) {
  Ref<CompiledFunction> f = function();
  inThreads(8, [&](int i) {
    for (int k = 0; k < 20; ++k) {
      try {
        CompiledCall region(f);
        Tensor x = Tensor::scalar(Number(1.0), DType::F32);
        Tensor y = ops::add(ops::mul(x, x), ops::add(x, x));
        if ((i + k) % 2)
          fail(ErrorKind::Value, "the user's own");
        region.finish();
        EXPECT_EQ(y.item().toDouble(), 3);
      } catch (const Error &e) {
        EXPECT_EQ(e.kind(), ErrorKind::Value);
      }
      EXPECT_FALSE(isCompiling());
    }
  });
  EXPECT_LE(compiler().total(), 2);
}

#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
TEST_F(CompileThreads, ChildrenOfAForkCompileAndRun) {
  CompileOptions background;
  background.background = true;
  Ref<CompiledFunction> f = function(), g = function(background);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; !stop; ++k)
        call(i % 2 ? f : g, 2 + k % 5, 1 + k % 40);
    });
  for (int k = 0; k < 20; ++k) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(30);
      bool right = call(f, 7, 3) == 14 && call(f, 7, 50 + k) == 14 && call(g, 9, 50 + k) == 18;
      _exit(right && forkGeneration() == 1 && waitForBackground(0) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  for (std::thread &t : threads)
    t.join();
}
#endif

} // namespace
