// Minimum cuts in small directed graphs (augmenting along shortest paths, in phases).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlc {

class MinCut {
public:
  static constexpr int64_t kInfinite = int64_t(1) << 60;
  explicit MinCut(std::size_t nodes) : first_(nodes, -1) {}
  void edge(std::size_t from, std::size_t to, int64_t capacity);
  /// Saturates all paths; returns the capacity of the cut.
  int64_t solve(std::size_t source, std::size_t sink);
  /// Whether `node` lies on the source's side of the cut that is nearest to the sink.
  bool beforeCut(std::size_t node) const { return !reachesSink_[node]; }

private:
  struct Edge {
    uint32_t to;
    int32_t next;
    int64_t left;
  };
  bool levels(std::size_t source, std::size_t sink);
  int64_t push(std::size_t source, std::size_t sink);
  std::vector<Edge> edges_; // edge i and its reverse i ^ 1
  std::vector<int32_t> first_, at_;
  std::vector<int32_t> level_;
  std::vector<bool> reachesSink_;
};

} // namespace dlc
