// The tape of a captured call as a template: the nodes that the call made between the tensors it was given and its
// results, made again over the tensors of a later call. Sits above the tape and below capture.
#pragma once
#include "runtime/autograd/Autograd.h"
#include <map>
#include <memory>
#include <unordered_map>

namespace dlc {

/// Where a later call has its values: tensors, symbols (the session's, in order) and numbers, by index.
struct TapeValues {
  Span<const Tensor> tensors;
  Ints symbols;
  Span<const Number> numbers;
};

/// What a capture knows about its tensors and numbers.
class TapeSources {
public:
  virtual ~TapeSources() = default;
  /// An index of TapeValues::tensors whose tensor will share its storage with the stand-in of `t`, and where `t` starts
  /// from that tensor's first element. False if the storage is not known.
  virtual bool storageOf(const Tensor &t, int32_t &index, Dim &offset) = 0;
  /// The index in TapeValues::numbers of a number that the session gave out; -1 if unknown.
  virtual int32_t numberOf(const void *ref) = 0;
};

class TapeTemplate {
public:
  /// Gives `results` (stand-ins of the recorded results, in order, without histories) theirs. The versions of all
  /// storages are already those that the call leaves. Throws only for lack of memory.
  void instantiate(const TapeValues &values, Span<const Tensor> results) const;
  size_t numNodes() const { return nodes_.size(); }
  /// Indices of TapeValues::tensors that instantiate() looks at, ascending.
  std::vector<int32_t> tensorsRead() const;
  /// Likewise of TapeValues::numbers, and the expressions of symbols that it evaluates.
  void numbersRead(std::vector<int32_t> &numbers, std::vector<Dim> &dims) const;
  bool empty() const { return nodes_.empty() && results_.empty() && entries_.empty(); }

private:
  friend class TapeCapture;
  /// An edge to an entry tensor's history (entry >= 0), to a node of the template, or none.
  struct Edge {
    int32_t entry = -1, node = -1;
    uint32_t index = 0;
  };
  struct Layout {
    Sizes sizes, strides;
    Dims sizeDims, strideDims; // used if symbolic
    Dim offset = 0;
    DType dtype = DType::F32;
    bool symbolic = false;
    void set(const TensorMeta &m);
    Tensor view(const Ref<Storage> &storage, int64_t from, Ints symbols) const;
  };
  struct Saved {
    enum class Kind : uint8_t { Same, Entry, View, Shape, Number, Size } kind = Kind::Same;
    Tensor same;     // Same: constant, or undefined
    int32_t at = -1; // Entry, View: of TapeValues::tensors; Number: of numbers
    Layout layout;   // View, Shape
    bool wrapped = false;
    Dim dim;             // Size: as a number
    Number number;       // Size: of which category
    uint32_t behind = 0; // versions since it was saved
  };
  struct NumberPart {
    int32_t at; // -1: dim
    Dim dim;
    Number like;
  };
  struct Node {
    Ref<GradNode> model;
    std::vector<Edge> edges;
    std::vector<Saved> saved;
    std::vector<NumberPart> numbers;
    std::vector<Dim> dims;
  };
  struct Base {
    enum class Kind : uint8_t { None, Entry, Result, Own } kind = Kind::None;
    int32_t at = -1; // Entry: of TapeValues::tensors; Result: of results
    Saved own;       // Own: a tensor that only its views know
    Edge history;
    uint32_t behind = 0; // versions since the view's history was made
  };
  struct Result {
    uint32_t result; // of results, or (entries_) of TapeValues::tensors
    Edge history;
    bool requiresGrad = false; // a leaf that wants one
    Base base;
  };
  class Run;
  static Number numberOf(const NumberPart &p, const TapeValues &v);

  std::vector<int32_t> used_; // entries whose edges are needed: of TapeValues::tensors
  std::vector<Node> nodes_;   // producers first
  std::vector<Result> results_, entries_;
};

/// Watches one capture: made before it, told of each tensor that the program is given.
class TapeCapture {
public:
  TapeCapture();
  /// A tensor of the state at entry, before the program could change its history; `index` of TapeValues::tensors.
  void addEntry(const Tensor &t, int32_t index);
  /// After the last piece ran. `results`: tensors made by the call that leave it. Null if the tape can't be made again,
  /// with `why` ("a hook ..."). Histories that the program gave entry tensors (in place) are part of the template.
  std::shared_ptr<TapeTemplate> finish(Span<const Tensor> results, TapeSources &sources, std::string &why);

private:
  using Edge = TapeTemplate::Edge;
  using Saved = TapeTemplate::Saved;
  using Key = std::pair<const GradNode *, uint32_t>;
  struct Entry {
    Tensor tensor;
    int32_t index;
    GradEdge edge;
  };
  bool collect(const GradEdge &root);
  bool edgeOf(const GradEdge &e, Edge &out);
  bool addNode(const Ref<GradNode> &node);
  bool describeSaved(const NodeParts::Saved &from, Saved &to);
  bool describeBase(const Tensor &t, Span<const Tensor> results, TapeTemplate::Base &to);
  bool addResult(const Tensor &t, uint32_t index, Span<const Tensor> results, bool entry);
  bool fail(const std::string &why);

  int64_t first_;
  std::vector<Entry> entries_;
  std::map<Key, size_t> byEdge_;
  std::unordered_map<const TensorImpl *, size_t> byTensor_;
  std::unordered_map<const GradNode *, int32_t> made_;
  std::map<int64_t, Ref<GradNode>> found_; // by sequence: producers come first
  std::shared_ptr<TapeTemplate> out_;
  TapeSources *sources_ = nullptr;
  std::string why_;
};

} // namespace dlc
