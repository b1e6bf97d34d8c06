// What a capture session sees of a recording: pieces as they are cut and run, ops run eagerly between them, numbers
// read concretely. The session (python/capture) turns this into a program that runs again without Python.
#pragma once
#include "runtime/graph/Graph.h"
#include "runtime/op/Dispatcher.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlc::trace {

/// A piece that can be run again: its compiled graph, or its nodes for the interpreter.
class PieceCode {
public:
  virtual ~PieceCode() = default;
  /// Whether the facts that the code rests on hold for these values of its symbols.
  virtual bool accepts(Ints symbols) const = 0;
  /// As CompiledGraph::run. Throws before anything was written; then the caller rolls back and runs Python.
  virtual void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) = 0;
  /// Index of the graph in explain(), for messages; ops recorded.
  virtual size_t numNodes() const = 0;
  /// True if run() is so short that the GIL need not be given up.
  virtual bool isShort() const = 0;
};

/// Where number operand i of a piece comes from.
struct NumberSource {
  enum class Kind : uint8_t { Constant, Session, Size, Seed, Offset } kind = Kind::Constant;
  Number value;                   ///< Constant; the others: category and hint
  const void *ref = nullptr;      ///< Session: the Number::ref() that the session gave out, made by sessionRef()
  Dim size = 0;                   ///< Size: this expression of the session's symbols as a number of value's category
  Generator *generator = nullptr; ///< Seed, Offset: of this generator before the op; operands are in program order
  Dim blocks = 0;                 ///< Offset: how far the op advances the generator
};

/// The source of a number that was given to an op, by its ref(). For arguments of opRan (Num arguments, and item() of
/// wrapped tensors, which keeps the ref).
NumberSource sourceOf(const Number &n);

/// The layout of a tensor as expressions of the session on this thread; null outside of sessions with symbols. Asking
/// makes a tensor known (inputMeta): a session asks for each tensor it loads, so that aliases and plain reads of its
/// sizes are seen. Inside the observer's methods `t.meta()` is the same.
std::optional<TensorMeta> tracedMeta(const Tensor &t);

/// One output of a piece.
struct PieceOutput {
  Ref<Storage> storage;   ///< the storage that now holds it; null: computed only because it may raise
  int32_t writeBack = -1; ///< index of the input whose memory was written, or -1 for a new storage
  /// What to add to the storage's version after a run: run() itself leaves the versions as they were.
  uint32_t versionBumps = 0;
};

struct PieceRecord {
  std::shared_ptr<PieceCode> code;
  /// The tensors as the program had them (not detached copies). `wholeStorage[i]`: instead the input is a flat view
  /// of all of that tensor's storage, offset 0, in its dtype. A tensor may be a view that as_strided made: whether the
  /// storage holds it at a later run is for the session to guard.
  std::vector<Tensor> inputs;
  std::vector<bool> wholeStorage;
  std::vector<NumberSource> numbers;
  std::vector<Dim> symbols; ///< the code's symbols as expressions of the session's symbols
  /// Facts over the session's symbols that the choice of this code rests on. What the ops' own rules took for granted
  /// went to the FactSink of the thread when the ops were recorded: a session with symbols installs one.
  std::vector<Fact> facts;
  std::vector<PieceOutput> outputs;
};

/// Installed on a recorder for one call. All methods are called on the recording thread.
class Observer {
public:
  virtual ~Observer() = default;
  /// Whether the session has symbols or gives out numbers. Asked once, when it is installed. If not, inputMeta and
  /// numberRead are never called.
  virtual bool symbolic() const = 0;
  /// A tensor that the recorder did not make is seen for the first time in this session (as an operand, by tracedMeta,
  /// or by a rule that asks for its sizes): the session may put symbolic Dims in place of sizes, strides and offset;
  /// their hints are the concrete ones. Sizes of 0 and 1 stay concrete. The answer is kept until the session ends.
  virtual void inputMeta(const Tensor &tensor, TensorMeta &meta) = 0;
  /// The piece was run. Called before anything else happens.
  virtual void pieceRan(PieceRecord record) = 0;
  /// An op ran eagerly because the graph can't hold it (data-dependent result sizes, ...). A result whose sizes depend
  /// on data is a tensor that the recorder did not make: see inputMeta.
  virtual void opRan(const OpInfo &op, Span<const Arg<Tensor>> args, Span<const Tensor> outs, CallForm form) = 0;
  /// Somebody decided by the value of a number that the session gave out (Number::ref()). From here on its value is
  /// part of the program.
  virtual void numberRead(const void *ref) = 0;
  /// Backward put `grad` into the leaf's .grad: as the tensor itself, or added in place to what was there.
  virtual void gradStored(const Tensor &leaf, const Tensor &grad, bool addedInPlace) = 0;
  /// Something that can't be run again without Python.
  virtual void notReplayable(const std::string &why) = 0;
};

} // namespace dlc::trace
