// The trace tier's recorder: an interceptor that writes ops into a Graph instead of running them. Python really runs;
// when it needs a value the piece recorded so far is handed to the piece runner and recording goes on.
//
// Storages are the unit of mutation: a storage has a *base*, the graph value of all of its memory as one dense view.
// A tensor caches the value of its view for the storage's current version; an in-place op makes a new base, so older
// reads keep what they saw and later reads of any view see the write. Inputs are written back when the piece ends.
#pragma once
#include "frontend/trace/GradLog.h"
#include "frontend/trace/Observer.h"
#include <functional>
#include <memory>

namespace dlc {
class GradPlan;
}

namespace dlc::trace {

/// What is known of an input's sizes beside their values; bit d stands for dimension d.
struct DimMarks {
  uint32_t dynamic = 0;   ///< dlc.mark_dynamic: vary from the start
  uint32_t fixed = 0;     ///< dlc.mark_static: each size has code of its own
  bool parameter = false; ///< a leaf that wants a gradient: belongs to the program more than to the call
};

/// A finished piece: the graph, the tensors of its inputs, and where its outputs go.
struct Piece {
  Graph graph;
  std::vector<Tensor> inputs;
  /// Inputs that share their storage with another input: not to be written before everything has been read.
  std::vector<bool> sharedInput;
  /// Inputs that belong to the program and that it only reads: parameters and buffers, unless the tape is to change
  /// them. What follows from them alone need not be computed in every call.
  std::vector<bool> stateInput;
  bool isState(size_t input) const { return input < stateInput.size() && stateInput[input]; }
  std::vector<Number> numbers;
  GradLog gradients; ///< of a call that ends, if asked for with logGradients() and its results are to have plans
  std::shared_ptr<GradPlan> plan; ///< with roots in `gradients` the runner runs this plan's forward
  std::vector<int64_t> symbols;   ///< of the plan, filled in by the runner
  std::vector<DimMarks> marks;    ///< one an input if anybody asks for marks, else none
  /// Null unless somebody observes; the runner fills in code, symbols and facts.
  PieceRecord *record = nullptr;
  /// Observed with symbols: the graph as it was recorded, while `graph` has the sizes of this recording; else empty.
  Graph symbolic;
};

/// Runs a piece: fills one tensor per graph output (write-backs are performed by the runner).
using PieceRunner = std::function<void(Piece &piece, std::vector<Tensor> &outs)>;

/// Why a piece ended.
enum class FlushReason : uint8_t { Exit, Value, DataDependent, Unsupported, Limit };

struct FlushEvent {
  FlushReason reason;
  std::string what; ///< the op or access that needed the value
  std::string loc;  ///< the user's file:line
  size_t nodes;
};

class Recorder final : public Interceptor, public LazySource, private SymbolicHost {
public:
  explicit Recorder(PieceRunner runner);
  ~Recorder() override;

  void intercept(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) override;
  void force(Storage &storage) override;
  void released(Storage &storage) override;
  /// Others are about to see (and may write) the memory: runs the piece if it reads it.
  void exporting(Storage &storage);

  /// Ends the piece: runs it and gives every tensor still alive its data. Does nothing if nothing is pending.
  void flush(FlushReason reason, const std::string &what);
  /// Called for each piece that ends for another reason than Exit.
  std::function<void(const FlushEvent &)> onBreak;
  /// Forgets the piece without running it; its tensors raise `message` when read.
  void abandon(const std::string &message);
  /// Gives the recorder to the next call: `runner` runs its pieces.
  void restart(PieceRunner runner) {
    runner_ = std::move(runner);
    logGradients(false);
  }
  /// From the next op on pieces say what the tape did with their calls.
  void logGradients(bool on);
  GradLogger *gradLogger() { return gradLogger_.get(); }
  /// Decides at the end of a call with gradients logged whether its graph is to stand for the tape.
  /// The piece has its graph (of the outputs the write-backs and roots) and its log.
  std::function<bool(Piece &piece)> canPlan;
  /// What the tape was at the end of the last call with gradients logged.
  enum class TapeEnd : uint8_t { None, Kept, Planned };
  TapeEnd tapeEnd() const { return tapeEnd_; }
  /// Reads the marks that the user put on a tensor; null while there are none in the process.
  static inline void (*readMarks)(const Tensor &t, DimMarks &out) = nullptr;
  /// Whether a tensor belongs to a module, as its parameter or buffer; null: none does.
  static inline bool (*belongsToModule)(const Tensor &t) = nullptr;
  /// Whether pieces are to have marks though nobody marked anything.
  void keepMarks(bool on) { keepMarks_ = on; }
  /// Installs an observer for the call (null: takes it away). Only between pieces.
  void setObserver(Observer *observer);
  Observer *observer() const { return observer_; }
  /// What stands behind symbolic sizes and numbers of this recording; null unless somebody observes.
  SymbolicHost *symbolicSizes() { return observer_ ? this : nullptr; }

private:
  friend class GradLogger;
  struct State {
    Storage *storage = nullptr; // null once it died
    Ref<Storage> keep;          // inputs are kept alive; deferred storages are not, so that the dead need no output
    int32_t base = -1;          // value of the whole storage, laid out as the base view; -1: an input not written yet
    Sizes sizes, strides;       // the base view
    int64_t offset = 0;
    DType dtype = DType::F32;
    bool input = false;
    bool dirty = false;
    bool saved = false;            // the tape saved this storage's values (with gradients logged)
    int32_t writeTo = -1;          // index of the graph input that the final base is written to
    std::vector<int32_t> inputsOf; // indices of the graph inputs that read this storage
    uint32_t bumps = 0;            // writes in this piece
    Dims symSizes, symStrides;     // the base view as expressions; empty unless there are symbols
    Dims sizeDims() const { return symSizes.size() == sizes.size() ? symSizes : Dims(sizes.begin(), sizes.end()); }
    Dims strideDims() const {
      return symStrides.size() == strides.size() ? symStrides : Dims(strides.begin(), strides.end());
    }
  };
  State &newState(Storage *storage);
  Span<const std::unique_ptr<State>> states() const { return {states_.data(), numStates_}; }
  State &track(const Tensor &t);
  int32_t valueOf(const Tensor &t);
  int32_t addInput(State &s, const Tensor &view, const Tensor &original, bool whole = false);
  bool isBase(const State &s, const Tensor &t) const;
  void establishBase(State &s, const Tensor &written);
  Tensor coveringView(State &s, const Tensor &written, bool &flat);
  bool coversAlways(const Tensor &t);
  void setBase(State &s, const Tensor &base);
  void write(const Tensor &t, int32_t value);
  int32_t node(const OpInfo &op, Span<const Arg<GVal>> args, SmallVec<TensorMeta, 3> &metas);
  int32_t stridedRead(State &s, const Tensor &t);
  int32_t toBaseOrder(const State &s, int32_t value);
  void factsOfLayout(const Dims &strides, const Dims &sizes, Span<const int64_t> order);
  void remember(const Tensor &t, int32_t value);
  Tensor deferred(const TensorMeta &meta, int32_t value);
  void record(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
  void recordView(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs);
  void runRule(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
  bool layoutsAgree(Span<const Arg<Tensor>> args, Span<const Arg<GVal>> gargs) const;
  void runNow(FlushReason reason, const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs,
              CallForm form);
  int32_t numberTensor(const Tensor &t, Span<const Arg<Tensor>> among);
  Arg<GVal> convert(const Arg<Tensor> &a, ParamKind kind, Span<const Arg<Tensor>> among, std::vector<GVal> &values);
  void castTo(SmallVec<TensorMeta, 3> &metas, int32_t &value, DType dtype);
  void take(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
  void raisePlainly(const OpInfo &op, Span<const Arg<Tensor>> args);
  void keepFallible();
  void reset();
  Number operand(const Number &n, NumberSource source);
  Number operand(const Number &n) { return operand(n, sourceOf(n)); }
  void takeRng(Arg<GVal> &to, Generator &g, Span<const Arg<Tensor>> args, const OpInfo &op);
  void symbolicResults(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs);
  void attach(const Tensor &t, const TensorMeta &meta);
  void makeConcrete();
  void preparePiece(PieceRecord &record);
  std::vector<Tensor> leaveTape();
  void attachPlan(Span<const Tensor> roots, std::vector<Tensor> &outs, PieceRecord &record);
  void describe(const Tensor &t, TensorMeta &meta) override;
  void sizesRead(const Tensor &t) override;
  void numberRead(const Number &n) override;

  PieceRunner runner_;
  std::unique_ptr<GradLogger> gradLogger_;
  TapeEnd tapeEnd_ = TapeEnd::None;
  Graph graph_;
  std::vector<std::unique_ptr<State>> states_; // the first numStates_ are in use, the others wait for the next piece
  size_t numStates_ = 0;
  std::vector<Tensor> inputTensors_;
  std::vector<DimMarks> inputMarks_;
  std::vector<bool> inputState_;
  bool keepMarks_ = false;
  Piece piece_;
  uint64_t epoch_;
  bool flushing_ = false;
  bool sawFallible_ = false; // some node may raise on the values of its operands

  Observer *observer_ = nullptr;
  bool symbolic_ = false;
  uint64_t session_ = 0;
  std::vector<Tensor> originals_;     // of inputs, while observed
  std::vector<bool> wholeStorage_;    // likewise
  std::vector<NumberSource> sources_; // of number operands, while observed
  std::vector<Tensor> described_;     // tensors of others that have a layout of this session
};

} // namespace dlc::trace
