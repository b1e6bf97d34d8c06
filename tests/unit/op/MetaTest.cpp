// Meta functions: promotion, broadcasting, layouts, symbolic sizes, errors; and the consistency of the op table.
#include "runtime/op/Functional.h"
#include "runtime/op/Meta.h"
#include <gtest/gtest.h>
#include <set>

using namespace dlc;
namespace {

TensorMeta meta(DType t, Dims sizes) { return TensorMeta::contiguous(t, std::move(sizes)); }
TensorMeta number(Number n) {
  TensorMeta m = TensorMeta::contiguous(n.dtype(), {});
  m.wrapped = true;
  return m;
}
using A = Arg<TensorMeta>;

TensorMeta run(OpId id, std::initializer_list<A> args) {
  MetaResult r;
  std::vector<A> v(args);
  opInfo(id).meta(v, r);
  return r.outs[0];
}
TensorMeta add(const TensorMeta &a, const TensorMeta &b) {
  return run(OpId::Add, {A::of(a), A::of(b), A::number(Number(1))});
}

template <class F> std::string messageOf(ErrorKind kind, F &&f) {
  try {
    f();
  } catch (const Error &e) {
    EXPECT_EQ(int(e.kind()), int(kind)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(OpTable, IsConsistent) {
  std::set<std::string> names;
  for (const OpInfo &op : opTable()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(&op, findOp(op.name));
    EXPECT_EQ(&op, &opTable()[op.id]);
    EXPECT_EQ(op.has(kDifferentiable), op.vjp.run != nullptr) << op.name;
    EXPECT_EQ(op.has(kHasRule), op.rule != nullptr) << op.name;
    EXPECT_TRUE(op.meta || !op.has(kInIr)) << op.name;
    bool mutates = false;
    for (const ParamInfo &p : op.params)
      mutates = mutates || isMutatedKind(p.kind);
    EXPECT_EQ(op.has(kMutates), mutates) << op.name;
  }
  EXPECT_GT(names.size(), 200u);
  EXPECT_EQ(findOp("no_such_op"), nullptr);
}

TEST(OpTable, SaysWhatTheTapeSaves) {
  const OpInfo &mul = opInfo(OpId::Mul), &exp = opInfo(OpId::Exp), &sum = opInfo(OpId::Sum), &add = opInfo(OpId::Add);
  EXPECT_EQ(mul.vjp.savedParams, 3u);
  EXPECT_TRUE(mul.vjp.inplaceCopiesSelf);
  EXPECT_EQ(exp.vjp.savedParams, 0u);
  EXPECT_EQ(exp.vjp.savedResults, 1u);
  EXPECT_FALSE(exp.vjp.inplaceCopiesSelf);
  EXPECT_EQ(sum.vjp.savedParams, 0u) << "only the sizes of self are read";
  EXPECT_EQ(add.vjp.savedParams, 0u);
}

TEST(Promotion, FollowsPyTorch) {
  auto type = [](const TensorMeta &a, const TensorMeta &b) { return add(a, b).dtype; };
  EXPECT_EQ(type(meta(DType::I64, {2}), number(2.0)), DType::F32);
  EXPECT_EQ(type(meta(DType::F16, {2}), meta(DType::I64, {})), DType::F16);
  EXPECT_EQ(type(meta(DType::I64, {2}), meta(DType::F64, {})), DType::F64);
  EXPECT_EQ(type(meta(DType::F32, {2}), meta(DType::F64, {})), DType::F32);
  EXPECT_EQ(type(meta(DType::F32, {2}), meta(DType::F64, {1})), DType::F64);
  EXPECT_EQ(type(meta(DType::U8, {2}), number(300)), DType::U8);
  EXPECT_EQ(type(meta(DType::Bool, {2}), number(1)), DType::I64);
  EXPECT_EQ(type(meta(DType::U8, {2}), meta(DType::I8, {2})), DType::I16);
  EXPECT_EQ(type(meta(DType::F16, {2}), meta(DType::BF16, {2})), DType::F32);
  EXPECT_EQ(run(OpId::Sum, {A::of(meta(DType::I8, {2})), A(), A::ofBool(false), A()}).dtype, DType::I64);
  EXPECT_EQ(run(OpId::Exp, {A::of(meta(DType::I32, {2}))}).dtype, DType::F32);
  EXPECT_EQ(run(OpId::Lt, {A::of(meta(DType::I32, {2})), A::of(number(1.5))}).dtype, DType::Bool);
}

TEST(Layout, ElementwiseKeepsTheOperandsOrder) {
  TensorMeta m = meta(DType::F32, {2, 3});
  std::swap(m.sizes[0], m.sizes[1]);
  std::swap(m.strides[0], m.strides[1]);
  EXPECT_EQ(run(OpId::Neg, {A::of(m)}).strides, m.strides);
  EXPECT_EQ(add(m, meta(DType::F32, {})).strides, m.strides);
  TensorMeta image = meta(DType::F32, {1, 2, 3, 3});
  image.strides = Dims{18, 1, 6, 2};
  EXPECT_EQ(run(OpId::Mul, {A::of(image), A::of(number(2))}).strides, image.strides);
  Dims pads{1, 1, 1, 1};
  EXPECT_EQ(run(OpId::Pad, {A::of(image), A::ofDims(pads), A::ofStr(Str("reflect")), A()}).strides,
            (Dims{50, 1, 10, 2}));
}

TEST(Symbolic, SizesCarryExpressions) {
  Dim s = Dim::symbol(0, 8), t = Dim::symbol(1, 5);
  FactSink sink;
  TensorMeta r = add(meta(DType::F32, {s, 1}), meta(DType::F32, {t}));
  EXPECT_TRUE(r.sizes[0].same(s));
  EXPECT_TRUE(r.sizes[1].same(t));
  EXPECT_TRUE(sink.take().empty());
  TensorMeta v = run(OpId::View, {A::of(meta(DType::F32, {s, t, 4})), A::ofDims(Dims{-1, 4})});
  EXPECT_TRUE(v.sizes[0].same(s * t)) << v.sizes[0];
  EXPECT_TRUE(v.strides[0].same(4));
}

TEST(Symbolic, EqualSizesBecomeFacts) {
  Dim s = Dim::symbol(0, 8), t = Dim::symbol(1, 8);
  FactSink sink;
  add(meta(DType::F32, {s}), meta(DType::F32, {t}));
  std::vector<Fact> facts = sink.take();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(int(facts[0].kind), int(Fact::Kind::EqZero));
}

TEST(Symbolic, SliceAndConvolution) {
  Dim s = Dim::symbol(0, 10);
  TensorMeta x = meta(DType::F32, {s, 4});
  TensorMeta all = run(OpId::Slice, {A::of(x), A::ofInt(0), A::ofDim(Dim(2)), A(), A::ofDim(Dim(3))});
  EXPECT_EQ(all.sizes[0].value(), 3);
  EXPECT_EQ(evaluate(all.sizes[0], Ints({int64_t(13)})), 4);
  EXPECT_TRUE(all.offset.same(8));
  int64_t one[] = {1, 1}, zero[] = {0, 0};
  TensorMeta w = meta(DType::F32, {6, 3, 3, 3}), image = meta(DType::F32, {s, 3, 8, 8});
  TensorMeta y = run(OpId::Conv2d, {A::of(image), A::of(w), A(), A::ofInts(Ints(one)), A::ofInts(Ints(zero)),
                                    A::ofInts(Ints(one)), A::ofInt(1)});
  EXPECT_TRUE(y.sizes[0].same(s));
  EXPECT_EQ(y.sizes[2].value(), 6);
}

TEST(Views, StridesAndOffsets) {
  TensorMeta x = meta(DType::F32, {3, 4});
  TensorMeta row = run(OpId::Select, {A::of(x), A::ofInt(0), A::ofDim(Dim(-1))});
  EXPECT_EQ(row.offset.value(), 8);
  EXPECT_EQ(row.sizes, (Dims{4}));
  TensorMeta wide = run(OpId::Expand, {A::of(meta(DType::F32, {3, 1})), A::ofDims(Dims{2, -1, 5})});
  EXPECT_EQ(wide.sizes, (Dims{2, 3, 5}));
  EXPECT_EQ(wide.strides, (Dims{0, 1, 0}));
  TensorMeta t = run(OpId::Transpose, {A::of(x), A::ofInt(0), A::ofInt(1)});
  std::string why = messageOf(ErrorKind::Runtime, [&] { run(OpId::View, {A::of(t), A::ofDims(Dims{12})}); });
  EXPECT_NE(why.find("use reshape()"), std::string::npos);
  EXPECT_EQ(run(OpId::View, {A::of(t), A::ofDims(Dims{2, 2, 3})}).strides, (Dims{2, 1, 4}));
  TensorMeta d = run(OpId::Diagonal, {A::of(x), A::ofInt(1), A::ofInt(0), A::ofInt(1)});
  EXPECT_EQ(d.sizes, (Dims{3}));
  EXPECT_EQ(d.strides, (Dims{5}));
  EXPECT_EQ(d.offset.value(), 1);
}

TEST(Errors, NameTheOpTheArgumentAndWhatToDo) {
  std::string why = messageOf(ErrorKind::Runtime, [] { add(meta(DType::F32, {2, 3}), meta(DType::F32, {2, 4})); });
  EXPECT_EQ(why, "add: sizes [2, 3] and [2, 4] do not broadcast: dimension -1 is 3 in one and 4 in another\nmake the "
                 "sizes equal, or one of them 1");
  why = messageOf(ErrorKind::Index, [] {
    run(OpId::Sum, {A::of(meta(DType::F32, {2, 3})), A::ofInts(Ints({int64_t(5)})), A::ofBool(false), A()});
  });
  EXPECT_EQ(why, "sum: `dim` is 5, out of range for 2 dimensions\nuse a dimension from -2 to 1");
  messageOf(ErrorKind::Runtime,
            [] { run(OpId::Mm, {A::of(meta(DType::F32, {2, 3})), A::of(meta(DType::F32, {2, 3}))}); });
  messageOf(ErrorKind::Runtime,
            [] { run(OpId::Mm, {A::of(meta(DType::F32, {2, 3})), A::of(meta(DType::F64, {3, 2}))}); });
  messageOf(ErrorKind::NotImplemented, [] { run(OpId::BitwiseAnd, {A::of(meta(DType::F32, {2})), A::of(number(1))}); });
  messageOf(ErrorKind::NotImplemented,
            [] { run(OpId::Mean, {A::of(meta(DType::I64, {2})), A(), A::ofBool(false), A()}); });
  messageOf(ErrorKind::Index,
            [] { run(OpId::Amax, {A::of(meta(DType::F32, {0})), A::ofInts(Ints({int64_t(0)})), A::ofBool(false)}); });
  messageOf(ErrorKind::Runtime, [] {
    add(meta(DType::I64, {2}), meta(DType::I64, {2})).dtype == DType::I64
        ? run(OpId::Add, {A::of(meta(DType::I64, {2})), A::of(number(1)), A::number(Number(1.5))})
        : TensorMeta();
  });
  messageOf(ErrorKind::Index, [] { run(OpId::Select, {A::of(meta(DType::F32, {3})), A::ofInt(0), A::ofDim(Dim(3))}); });
}

TEST(Cat, SkipsEmptyVectorsAndPromotes) {
  std::vector<TensorMeta> parts{meta(DType::F32, {2, 3}), meta(DType::F32, {0}), meta(DType::F64, {4, 3})};
  TensorMeta r = run(OpId::Cat, {A::list(parts), A::ofInt(0)});
  EXPECT_EQ(r.sizes, (Dims{6, 3}));
  EXPECT_EQ(r.dtype, DType::F64);
}

TEST(Index, BroadcastShapeStandsWhereIndicesAreAdjacent) {
  TensorMeta x = meta(DType::F32, {2, 3, 4, 5}), i = meta(DType::I64, {7, 1}), j = meta(DType::I64, {6});
  std::vector<TensorMeta> adjacent{TensorMeta(), i, j}, apart{i, TensorMeta(), j};
  EXPECT_EQ(run(OpId::Index, {A::of(x), A::list(adjacent)}).sizes, (Dims{2, 7, 6, 5}));
  EXPECT_EQ(run(OpId::Index, {A::of(x), A::list(apart)}).sizes, (Dims{7, 6, 3, 5}));
}

} // namespace
