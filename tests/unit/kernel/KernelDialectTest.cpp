// KernelBuilder makes verified IR, and its text reads back to the same text.
#include "dialects/kernel/KernelBuilder.h"

#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace {

struct KernelDialectTest : testing::Test {
  KernelDialectTest() {
    context.loadDialect<KernelDialect, arith::ArithDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }
  std::string text() {
    std::string out;
    llvm::raw_string_ostream(out) << *module;
    return out;
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(KernelDialectTest, BuildsSoftmaxAndReadsItBack) {
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  Location loc = b.getUnknownLoc();
  Type f32 = b.getF32Type();
  KernelBuilder k(b, loc, "softmax");
  Value x = k.buffer(f32, {ShapedType::kDynamic, 1});
  Value y = k.output(f32, {ShapedType::kDynamic, 1});
  k.dim("r", k.index());
  k.dim("c", k.index());
  AffineMap id = b.getMultiDimIdentityMap(2);
  Value m = k.reduce({"r", "c"}, {"c"}, {Combine::max}, [&](StageBuilder &s) { s.yield({s.read(x, id)}); })[0];
  Value e = k.map({"r", "c"}, [&](StageBuilder &s) {
    Value d = s.b.create<arith::SubFOp>(s.loc, s.read(x, id), s.use(m));
    s.yield({s.prim("exp", {d}, f32)});
  })[0];
  Value t = k.reduce({"r", "c"}, {"c"}, {Combine::add}, [&](StageBuilder &s) { s.yield({s.use(e)}); })[0];
  Value o =
      k.map({"r", "c"}, [&](StageBuilder &s) { s.yield({s.b.create<arith::DivFOp>(s.loc, s.use(e), s.use(t))}); })[0];
  k.write(o, y, id);
  FuncOp func = k.finish();
  ASSERT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(func.getNumInts(), 4u); // two strides, two sizes
  EXPECT_EQ(func.getIntIndex(3), 3u);
  EXPECT_EQ(func.getBufIndex(4), 2u);

  std::string first = text();
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(first, &context);
  ASSERT_TRUE(again);
  module = std::move(again);
  EXPECT_EQ(text(), first);
}

TEST_F(KernelDialectTest, ScheduleFieldsReadBack) {
  const char *source = R"(
    kernel.func @f(%y: memref<?xf32, strided<[1]>>, %n: index, %err: memref<i64>) domain(i = %n, j = 4) outs(%y)
        attributes {schedule = #kernel.schedule<order = [i, j], vec = {i = 8}, unroll = 2, place = {s0 = out}>} {
      %a = kernel.map over(i) : !kernel.val<f32, [i]> {
        %c = arith.constant 1.0 : f32
        kernel.yield %c : f32
      }
      kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
    })";
  module = parseSourceString<ModuleOp>(source, &context);
  ASSERT_TRUE(module);
  auto func = *module->getOps<FuncOp>().begin();
  ScheduleAttr schedule = func.getScheduleAttr();
  EXPECT_EQ(schedule.getVecDim(), "i");
  EXPECT_EQ(schedule.getVecWidth(), 8);
  EXPECT_EQ(schedule.getInt("unroll", 1), 2);
  EXPECT_EQ(schedule.getPlace(0), "out");
  EXPECT_EQ(schedule.getOrder().size(), 2u);
  std::string first = text();
  module = parseSourceString<ModuleOp>(first, &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(text(), first);
}

} // namespace
