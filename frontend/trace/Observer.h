// What a capture session sees of a recording: pieces as they are cut and run, ops run eagerly between them, numbers
// read concretely. The session (python/capture) turns this into a program that runs again without Python.
#pragma once
#include "runtime/graph/Graph.h"
#include "runtime/op/Dispatcher.h"
#include <memory>
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
  enum class Kind : uint8_t { Constant, Session, Seed, Offset } kind = Kind::Constant;
  Number value;              ///< Constant
  const void *ref = nullptr; ///< Session: the Number::ref() that the session gave out
  Generator *generator = nullptr; ///< Seed, Offset
  Dim blocks = 0;            ///< Offset: how far the op advances the generator
};

/// One output of a piece.
struct PieceOutput {
  Ref<Storage> storage;      ///< the storage that now holds it
  int32_t writeBack = -1;    ///< index of the input whose memory was written, or -1 for a new storage
  uint32_t versionBumps = 0; ///< how often the program changed the storage in this piece
};

struct PieceRecord {
  std::shared_ptr<PieceCode> code;
  /// The tensors as the program had them (not detached copies). `wholeStorage[i]`: instead the input is a flat view
  /// of all of that tensor's storage.
  std::vector<Tensor> inputs;
  std::vector<bool> wholeStorage;
  std::vector<NumberSource> numbers;
  std::vector<Dim> symbols; ///< the code's symbols as expressions of the session's symbols
  std::vector<Fact> facts;  ///< facts over the session's symbols that the choice of this code rests on
  std::vector<PieceOutput> outputs;
};

/// Installed on a recorder for one call. All methods are called on the recording thread.
class Observer {
public:
  virtual ~Observer() = default;
  /// A new input of the piece: the session may put symbolic Dims in place of sizes and strides.
  virtual void inputMeta(const Tensor &tensor, TensorMeta &meta) = 0;
  /// The piece was run. Called before anything else happens.
  virtual void pieceRan(PieceRecord record) = 0;
  /// An op ran eagerly because the graph can't hold it (data-dependent result sizes, ...).
  virtual void opRan(const OpInfo &op, Span<const Arg<Tensor>> args, Span<const Tensor> outs, CallForm form) = 0;
  /// Somebody decided by the value of a number that the session gave out (Number::ref()).
  virtual void numberRead(const void *ref) = 0;
  /// Backward put `grad` into the leaf's .grad: as the tensor itself, or added in place to what was there.
  virtual void gradStored(const Tensor &leaf, const Tensor &grad, bool addedInPlace) = 0;
  /// Something that can't be run again without Python.
  virtual void notReplayable(const std::string &why) = 0;
};

} // namespace dlc::trace
