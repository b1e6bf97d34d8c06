// The kernel cache on disk: warm processes do not run LLVM; damaged, foreign and old entries are ignored and replaced.
#include "KernelHarness.h"

#include <dirent.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

using namespace dlc::compiler;

namespace {

const char *kFill = R"(
kernel.func @fill(%y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n) outs(%y) {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %c = arith.constant $V : f32
    kernel.yield %c : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
})";

struct ObjectCacheTest : testing::Test {
  ObjectCacheTest() {
    std::string name = testing::TempDir() + "dlc-cache-XXXXXX";
    root = mkdtemp(name.data());
    directory = root + "/dlc";
  }
  ~ObjectCacheTest() override {
    chmod(directory.c_str(), 0700);
    for (const std::string &file : files())
      unlink(file.c_str());
    rmdir(directory.c_str());
    rmdir(root.c_str());
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    if (DIR *dir = opendir(directory.c_str())) {
      while (dirent *entry = readdir(dir))
        if (entry->d_name != std::string(".") && entry->d_name != std::string(".."))
          names.push_back(directory + "/" + entry->d_name);
      closedir(dir);
    }
    return names;
  }
  CpuCompilerOptions options(uint64_t limit = 1 << 24) {
    CpuCompilerOptions o;
    o.cacheDirectory = directory;
    o.cacheLimit = limit;
    o.threads = 2;
    return o;
  }
  // Compiles in a compiler of its own, as another process would, and checks that the code works.
  KernelCompileStats compile(const char *value = "2.0", uint64_t limit = 1 << 24) {
    KernelHarness h(options(limit));
    CompiledKernel k = h.one(fill(kFill, {{"$V", value}}));
    EXPECT_TRUE(k.fn);
    std::vector<float> y(5);
    run(k, {y.data()}, {5});
    EXPECT_EQ(y, std::vector<float>(5, std::stof(value)));
    return h.compiler.stats();
  }
  std::string root, directory;
};

TEST_F(ObjectCacheTest, SecondProcessRunsNoLlvm) {
  KernelCompileStats cold = compile(), warm = compile();
  EXPECT_EQ(cold.llvmCompilations, 1);
  EXPECT_EQ(cold.cacheHits, 0);
  EXPECT_EQ(warm.llvmCompilations, 0);
  EXPECT_EQ(warm.cacheHits, 1);
  struct stat info;
  ASSERT_EQ(stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(files().size(), 1u);
  std::ifstream file(files()[0]);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_NE(content.str().find("kernel.func @kernel"), std::string::npos) << "the source lies beside the binary";
}

TEST_F(ObjectCacheTest, EqualKernelsAreCompiledOnce) {
  KernelHarness h(options());
  std::string two = fill(kFill, {{"$V", "3.0"}}), other = fill(kFill, {{"$V", "3.0"}, {"@fill", "@again"}});
  auto kernels = h.compile(two + other + fill(kFill, {{"$V", "4.0"}, {"@fill", "@third"}}));
  ASSERT_EQ(kernels.size(), 3u) << h.error;
  EXPECT_EQ(h.compiler.stats().llvmCompilations, 2);
  EXPECT_EQ(h.compiler.stats().shared, 1);
  EXPECT_EQ(kernels[0].fn, kernels[1].fn);
  EXPECT_NE(kernels[0].fn, kernels[2].fn);
  EXPECT_EQ(kernels[1].info.name, "again");
}

TEST_F(ObjectCacheTest, DamagedEntriesAreReplaced) {
  compile();
  ASSERT_EQ(files().size(), 1u);
  std::string path = files()[0], whole;
  {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    whole = content.str();
  }
  auto damage = [&](std::string content) { std::ofstream(path, std::ios::binary | std::ios::trunc) << content; };
  std::vector<std::string> bad = {"", "x", whole.substr(0, 50), whole.substr(0, whole.size() / 2), whole + "!"};
  for (size_t at : {size_t(0), size_t(9), size_t(30), size_t(100), whole.size() / 2, whole.size() - 2}) {
    bad.push_back(whole);
    bad.back()[at] = char(bad.back()[at] ^ 0x40);
  }
  for (const std::string &content : bad) {
    damage(content);
    KernelCompileStats stats = compile();
    EXPECT_EQ(stats.llvmCompilations, 1) << content.size();
    EXPECT_EQ(stats.badEntries, 1) << content.size();
    EXPECT_EQ(compile().cacheHits, 1) << "replaced";
  }
}

TEST_F(ObjectCacheTest, AnotherKernelsEntryIsNotTaken) {
  compile("2.0");
  std::string two = files()[0];
  compile("3.0");
  for (const std::string &file : files())
    if (file != two) {
      unlink(file.c_str());
      ASSERT_EQ(rename(two.c_str(), file.c_str()), 0); // a valid entry under a foreign key
    }
  KernelCompileStats stats = compile("3.0");
  EXPECT_EQ(stats.llvmCompilations, 1);
  EXPECT_EQ(stats.badEntries, 1);
}

TEST_F(ObjectCacheTest, LinksAndWritableEntriesAreNotTrusted) {
  compile();
  std::string path = files()[0], aside = root + "/aside";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(compile().llvmCompilations, 1);
  EXPECT_EQ(compile().cacheHits, 1);
  ASSERT_EQ(rename(path.c_str(), aside.c_str()), 0);
  ASSERT_EQ(symlink(aside.c_str(), path.c_str()), 0);
  EXPECT_EQ(compile().llvmCompilations, 1);
  unlink(aside.c_str());
}

TEST_F(ObjectCacheTest, EntriesOfOtherUsersAreNotTrusted) {
  compile();
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a file another user's";
  std::string path = files()[0];
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  KernelCompileStats stats = compile();
  EXPECT_EQ(stats.llvmCompilations, 1);
  EXPECT_EQ(stats.badEntries, 1);
  EXPECT_EQ(compile().cacheHits, 1);
}

TEST_F(ObjectCacheTest, DirectoryOfOthersIsNotUsed) {
  ASSERT_EQ(mkdir(directory.c_str(), 0777), 0);
  ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
  EXPECT_EQ(compile().llvmCompilations, 1);
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(compile().llvmCompilations, 1);
}

TEST_F(ObjectCacheTest, ReadOnlyDirectoryStillCompiles) {
  ASSERT_EQ(mkdir(directory.c_str(), 0500), 0);
  EXPECT_EQ(compile().llvmCompilations, 1);
}

TEST_F(ObjectCacheTest, OldEntriesGoWhenTheLimitIsReached) {
  compile("2.0");
  std::string first = files()[0];
  struct stat info;
  ASSERT_EQ(stat(first.c_str(), &info), 0);
  uint64_t limit = uint64_t(info.st_size) * 5 / 2; // two entries fit
  timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, first.c_str(), old, 0), 0);
  compile("3.0", limit);
  compile("4.0", limit);
  EXPECT_EQ(files().size(), 2u);
  EXPECT_NE(access(first.c_str(), F_OK), 0);
  EXPECT_EQ(compile("4.0", limit).cacheHits, 1);
}

TEST_F(ObjectCacheTest, LeftoversOfDeadProcessesGo) {
  compile("2.0");
  std::string old = directory + "/.abc.1.0", young = directory + "/.abc.2.0";
  std::ofstream(old) << "x";
  std::ofstream(young) << "x";
  timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  compile("3.0");
  EXPECT_NE(access(old.c_str(), F_OK), 0);
  EXPECT_EQ(access(young.c_str(), F_OK), 0);
}

TEST_F(ObjectCacheTest, CodeIsFreedWithItsLastUser) {
  KernelHarness h(options());
  std::weak_ptr<const void> code;
  {
    CompiledKernel k = h.one(fill(kFill, {{"$V", "5.0"}}));
    code = k.code;
    EXPECT_FALSE(code.expired());
  }
  EXPECT_TRUE(code.expired());
}

} // namespace
