// Blocking flows over level graphs, without recursion: recorded graphs are deep.
#include "frontend/autograd/MinCut.h"
#include <algorithm>

namespace dlc {
using std::size_t;

void MinCut::edge(size_t from, size_t to, int64_t capacity) {
  edges_.push_back({static_cast<uint32_t>(to), first_[from], capacity});
  first_[from] = static_cast<int32_t>(edges_.size()) - 1;
  edges_.push_back({static_cast<uint32_t>(from), first_[to], 0});
  first_[to] = static_cast<int32_t>(edges_.size()) - 1;
}

bool MinCut::levels(size_t source, size_t sink) {
  level_.assign(first_.size(), -1);
  std::vector<size_t> queue{source};
  level_[source] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int32_t e = first_[queue[i]]; e >= 0; e = edges_[e].next)
      if (edges_[e].left > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink] >= 0;
}

/// One augmenting path of the level graph; 0 when there is none left.
int64_t MinCut::push(size_t source, size_t sink) {
  std::vector<int32_t> path;
  size_t node = source;
  while (node != sink) {
    int32_t &e = at_[node];
    while (e >= 0 && !(edges_[e].left > 0 && level_[edges_[e].to] == level_[node] + 1))
      e = edges_[e].next;
    if (e >= 0) {
      path.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path.empty())
      return 0;
    level_[node] = -1; // a dead end
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
  }
  int64_t flow = kInfinite;
  for (int32_t e : path)
    flow = std::min(flow, edges_[e].left);
  for (int32_t e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1].left += flow;
  }
  return flow;
}

int64_t MinCut::solve(size_t source, size_t sink) {
  int64_t total = 0;
  while (levels(source, sink)) {
    at_ = first_;
    while (int64_t flow = push(source, sink)) {
      total += flow;
      if (total >= kInfinite)
        return kInfinite;
    }
  }
  reachesSink_.assign(first_.size(), false);
  std::vector<size_t> queue{sink};
  reachesSink_[sink] = true;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int32_t e = first_[queue[i]]; e >= 0; e = edges_[e].next)
      if (edges_[e ^ 1].left > 0 && !reachesSink_[edges_[e].to]) {
        reachesSink_[edges_[e].to] = true;
        queue.push_back(edges_[e].to);
      }
  return total;
}

} // namespace dlc
