// The table behind Profile.h; steps are few and long beside a look-up, so one lock does.
#include "runtime/exec/Profile.h"
#include <algorithm>
#include <atomic>
#include <map>

namespace dlc {

namespace {

struct Table {
  std::atomic<bool> on{false};
  ForkMutex mutex;
  std::map<std::string, ProfileRow> rows;
};

Table &table() {
  static Table t;
  return t;
}

std::string shapeOf(const PlanBuffer &b, Ints symbols) {
  std::string out;
  for (const Dim &d : b.sizes)
    out += (out.empty() ? "" : "x") + std::to_string(evaluate(d, symbols));
  return out.empty() ? "scalar" : out;
}

/// "64x784, 784x512 -> 64x512", of whole buffers.
std::string shapesOf(const LaunchPlan &plan, const StepInfo &info, Ints symbols) {
  std::string out;
  for (uint32_t b : info.reads)
    out += (out.empty() ? "" : ", ") + shapeOf(plan.buffers()[b], symbols);
  for (size_t i = 0; i < info.writes.size(); ++i)
    out += (i ? ", " : " -> ") + shapeOf(plan.buffers()[info.writes[i]], symbols);
  return out;
}

} // namespace

const char *nameOf(StepClass c) {
  switch (c) {
  case StepClass::Kernel:
    return "kernel";
  case StepClass::Library:
    return "library";
  case StepClass::Memory:
    return "memory";
  default:
    return "op";
  }
}

bool isProfiling() { return table().on.load(std::memory_order_relaxed); }

void startProfile() {
  std::lock_guard lock(table().mutex);
  table().rows.clear();
  table().on = true;
}

std::vector<ProfileRow> takeProfile() {
  std::lock_guard lock(table().mutex);
  table().on = false;
  std::vector<ProfileRow> rows;
  for (auto &[key, row] : table().rows)
    rows.push_back(std::move(row));
  table().rows.clear();
  std::sort(rows.begin(), rows.end(), [](const ProfileRow &a, const ProfileRow &b) { return a.seconds > b.seconds; });
  return rows;
}

void addToProfile(const LaunchPlan &plan, Ints symbols, const std::vector<double> &seconds) {
  std::lock_guard lock(table().mutex);
  for (size_t i = 0; i < seconds.size(); ++i) {
    const StepInfo &info = plan.infos()[i];
    std::string shapes = shapesOf(plan, info, symbols);
    ProfileRow &row = table().rows[info.name + '|' + shapes];
    if (!row.calls) {
      row.kind = nameOf(info.stepClass);
      row.name = info.name;
      row.ops = info.ops;
      row.shapes = std::move(shapes);
      row.bytes = evaluate(info.readBytes, symbols) + evaluate(info.writtenBytes, symbols);
      row.flops = evaluate(info.flops, symbols);
    }
    ++row.calls;
    row.seconds += seconds[i];
  }
}

} // namespace dlc
