// The run-time face of an op's record. The table of them (opTable()) is generated; nothing else lists ops.
#pragma once
#include "runtime/op/Arg.h"

namespace dlc {

/// See the table of parameter kinds in dialects/ops/OpBase.td.
enum class ParamKind : uint8_t {
  T,
  TMut,
  TOpt,
  TOptMut,
  TN,
  TNOpt,
  TList,
  TListMut,
  TOptList, // tensors
  Num,
  NumOpt, // run-time numbers
  SymInt,
  SymIntOpt,
  SymInts,
  SymIntsOpt, // run-time sizes and indices
  Rng,        // generator
  Int,
  IntOpt,
  IntList,
  IntListOpt,
  Bool,
  Float,
  FloatOpt,
  Str,
  StrOpt,
  DTypeA,
  DTypeOpt,
  DeviceOpt // attributes
};
constexpr bool isTensorKind(ParamKind k) { return k <= ParamKind::TOptList; }
constexpr bool isMutatedKind(ParamKind k) {
  return k == ParamKind::TMut || k == ParamKind::TOptMut || k == ParamKind::TListMut;
}
constexpr bool isTensorListKind(ParamKind k) { return k >= ParamKind::TList && k <= ParamKind::TOptList; }

enum class OpKind : uint8_t { Elementwise, Reduce, View, Contraction, Creation, Random, Index, Composite, Structured };
enum class Promotion : uint8_t { None, Arith, ToFloat, ToBool, Sum, Index };

enum OpFlags : uint32_t {
  kCommutative = 1,
  kAssociative = 2,
  kIdempotent = 4,
  kRowWise = 8,
  kDifferentiable = 16, ///< has a vjp
  kHasKernel = 32,
  kHasRule = 64,        ///< has a decomposition rule
  kInIr = 128,          ///< occurs in graphs and the dialect; otherwise capture records its rule's ops
  kMutates = 256,       ///< some parameter is mutated
  kRandom = 512,        ///< takes numbers from a generator
  kDataDependent = 1024 ///< result sizes depend on data (nonzero, masked_select)
};

struct ParamInfo {
  const char *name;
  ParamKind kind;
};

/// What a meta function fills: one TensorMeta per result (lists count as their elements).
struct MetaResult {
  SmallVec<TensorMeta, 3> outs;
};

using MetaFn = void (*)(Span<const Arg<TensorMeta>> args, MetaResult &result);
/// Destination passing: `outs` are allocated as the meta function says. Mutated parameters are written in place.
using KernelFn = void (*)(Span<const Arg<Tensor>> args, Span<Tensor> outs);
/// A composite's rule over eager tensors (through the dispatcher); fills `outs`.
using RuleFn = void (*)(Span<const Arg<Tensor>> args, Span<Tensor> outs);

/// A gradient: computes the cotangents of the tensor inputs from those of the results.
struct VjpInfo {
  uint64_t savedParams = 0;       ///< bit i: the rule reads the values of parameter i
  uint64_t savedResults = 0;      ///< bit i: the rule reads result i
  bool inplaceCopiesSelf = false; ///< the rule reads `self`, which the in-place form overwrites
  /// args: the forward's arguments (unsaved tensors hold metadata only); results: the saved ones, others undefined;
  /// grads: one per result, possibly undefined; needs: one per flattened tensor input; out: the same, undefined if
  /// none.
  void (*run)(Span<const Arg<Tensor>> args, Span<const Tensor> results, Span<const Tensor> grads,
              Span<const bool> needs, Span<Tensor> out) = nullptr;
};

struct OpInfo {
  const char *name; ///< the mnemonic, "add"
  uint16_t id;      ///< index in opTable()
  OpKind kind;
  Promotion promotion;
  uint32_t flags;
  uint32_t dtypes; ///< bit per accepted DType
  Span<const ParamInfo> params;
  Span<const char *const> results; ///< names; a single list result is one entry
  uint8_t publicResults;
  bool listResult;
  const char *schema; ///< PyTorch's schema text, derived
  MetaFn meta;
  KernelFn kernel; ///< null without kHasKernel
  RuleFn rule;     ///< null without kHasRule
  VjpInfo vjp;
  bool has(OpFlags f) const { return (flags & f) != 0; }
};

/// All ops, ordered by id. Defined in the library dlc_ops, which joins the records with the kernels.
Span<const OpInfo> opTable();
/// Null if there is none of that name.
const OpInfo *findOp(Str name);

/// Random ops. The one rule of the stream: a call takes rngBlocks() Philox blocks of its generator, and element i of
/// its result uses word i % 4 of block `offset + i / 4`. The dispatcher advances the user's generator and hands the
/// kernel (and the recorder: the graph, as two i64 operands `seed, offset`) a generator positioned at the first block,
/// so kernels read seed() and offset() and never call take(). Blocks: ceil(max(numel of result 0, numel of the first
/// tensor argument) / 4).
uint64_t rngBlocks(Span<const Arg<TensorMeta>> args, const MetaResult &result);

/// Data-dependent ops (kDataDependent): the meta function leaves the sizes it cannot know at 0 and the kernel replaces
/// the undefined `outs` with tensors of its own. Views (OpKind::View) have no kernel: the result is a view of argument
/// 0's storage with the meta's sizes, strides and offset.

/// The boxed arguments of `from` with every tensor replaced by its meta; the result points into `storage`.
struct MetaArgs {
  explicit MetaArgs(Span<const Arg<Tensor>> from);
  SmallVec<Arg<TensorMeta>, 12> args;
  SmallVec<TensorMeta, 4> metas;
};

} // namespace dlc
