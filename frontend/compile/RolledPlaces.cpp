// Where the values of loops lie: what a step makes goes to a slot of a buffer, and what it reads is found there, so
// that many steps run without a look at tensors in between.
#include "frontend/compile/RolledGraph.h"
#include "runtime/op/Ops.h"
#include <algorithm>

namespace dlc {
namespace {

class Placer {
public:
  explicit Placer(RolledGraph &g) : g_(g), death_(g.numValues, INT64_MAX) {
    for (size_t slot = 0; slot + 1 < g.deadAt.size(); ++slot)
      for (uint32_t k = g.deadAt[slot]; k < g.deadAt[slot + 1]; ++k)
        death_[g.dead[k]] = static_cast<int64_t>(slot);
  }

  void place() {
    g_.slotOf.assign(g_.numValues, {});
    int64_t time = 0;
    for (RolledPart &part : g_.parts) {
      if (canRunInRow(part)) {
        addBuffers(part, time);
        fillPlaces(part);
      } else if (part.kind == RolledPart::Kind::Eager) {
        placeList(part);
      }
      time += static_cast<int64_t>(part.steps);
    }
  }

private:
  static bool canRunInRow(const RolledPart &part) {
    const Graph &g = part.piece.graph;
    if (part.steps < 2 || part.kind != RolledPart::Kind::Piece || part.numScattered || !part.dims.empty() ||
        part.numOutputs() == 0)
      return false;
    for (size_t k = part.numNumbers(); k < part.numbers.size(); ++k)
      if (part.numbers[k] != part.numbers[k - part.numNumbers()])
        return false;
    return std::none_of(part.dense.begin(), part.dense.end(), [](uint8_t d) { return d != 0; }) &&
           std::none_of(g.outputs.begin(), g.outputs.end(), [](const GraphOutput &o) { return o.writeBack >= 0; }) &&
           std::none_of(g.nodes.begin(), g.nodes.end(), [](const GraphNode &n) { return n.op->has(kMutates); });
  }

  /// `time`: that of the part's first step. A value's slot is taken again when it has died in all steps but the last,
  /// whose slot nothing follows.
  void addBuffers(const RolledPart &part, int64_t time) {
    const Graph &graph = part.piece.graph;
    size_t numOut = part.numOutputs();
    for (size_t o = 0; o < numOut; ++o) {
      RolledBuffer b;
      const TensorMeta &m = graph.values[graph.outputs[o].value];
      b.dtype = m.dtype;
      b.elements = 1;
      for (size_t d = 0; d < m.sizes.size(); ++d) {
        b.sizes.push_back(m.sizes[d].value());
        b.strides.push_back(graph.outputs[o].strides[d].value());
        b.elements *= b.sizes.back();
      }
      int64_t most = 1;
      for (size_t s = 0; s + 1 < part.steps; ++s) {
        int64_t death = death_[part.out[s * numOut + o]], now = time + static_cast<int64_t>(s);
        most = std::max(most, death == INT64_MAX ? INT64_MAX : death / 2 - now + 1);
      }
      b.slots = static_cast<size_t>(std::min<int64_t>(most, static_cast<int64_t>(part.steps)));
      b.values = part.steps;
      int32_t root = static_cast<int32_t>(g_.numValues + g_.buffers.size());
      for (size_t s = 0; s < part.steps; ++s)
        g_.slotOf[part.out[s * numOut + o]] = {root, static_cast<int64_t>(s % b.slots) * b.elements};
      g_.buffers.push_back(std::move(b));
    }
  }

  RolledPlace placeOf(int32_t v) const {
    int64_t offset = 0;
    for (int32_t k; (k = g_.viewOf[v]) >= 0 && g_.views[k].source < 0; v = g_.views[k].base)
      offset += g_.views[k].offset;
    if (const RolledPlace &slot = g_.slotOf[v]; slot.root >= 0)
      return {slot.root, slot.offset + offset};
    return {v, offset};
  }

  void fillPlaces(RolledPart &part) const {
    size_t numIn = part.numInputs(), numOut = part.numOutputs();
    part.places.reserve(part.steps * (numIn + numOut));
    for (size_t s = 0; s < part.steps; ++s) {
      for (size_t k = 0; k < numIn; ++k)
        part.places.push_back(placeOf(part.in[s * numIn + k]));
      for (size_t k = 0; k < numOut; ++k)
        part.places.push_back(placeOf(part.out[s * numOut + k]));
    }
  }

  /// Values that are joined and lie at equal distances are one strided view.
  void placeList(RolledPart &part) const {
    const GraphNode &n = part.piece.graph.nodes[0];
    if (n.op != &opInfo(OpId::Cat) || part.in.size() < 2 || part.in.size() != n.args.values().size())
      return;
    std::vector<RolledPlace> places;
    for (int32_t v : part.in)
      places.push_back(placeOf(v));
    int64_t apart = places[1].offset - places[0].offset;
    for (size_t k = 1; k < places.size(); ++k)
      if (places[k].root != places[0].root || places[k].offset - places[k - 1].offset != apart || apart <= 0 ||
          !alike(part.in[k], part.in[0]))
        return;
    part.places = std::move(places);
  }

  /// The same sizes and strides, as views or slots have them.
  bool alike(int32_t a, int32_t b) const {
    auto layout = [&](int32_t v, Ints &sizes, Ints &strides) {
      if (int32_t k = g_.viewOf[v]; k >= 0 && g_.views[k].source < 0) {
        sizes = Ints(g_.views[k].sizes);
        strides = Ints(g_.views[k].strides);
        return true;
      }
      if (g_.slotOf[v].root < 0)
        return false;
      const RolledBuffer &slot = g_.buffers[g_.slotOf[v].root - g_.numValues];
      sizes = Ints(slot.sizes);
      strides = Ints(slot.strides);
      return true;
    };
    Ints sizesA, stridesA, sizesB, stridesB;
    return layout(a, sizesA, stridesA) && layout(b, sizesB, stridesB) && equal(sizesA, sizesB) &&
           equal(stridesA, stridesB);
  }

  RolledGraph &g_;
  std::vector<int64_t> death_; // per value: two slots a step, as in deadAt; never: the largest number
};

} // namespace

void RolledGraph::placeLoops() { Placer(*this).place(); }

} // namespace dlc
