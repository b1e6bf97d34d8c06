// Values of a plan that follow from its state inputs alone (packed, folded or transposed weights): computed when a
// state input has changed, kept otherwise, and shared by all plans that derive the same from the same memory.
#pragma once
#include "runtime/core/ForkSafe.h"
#include "runtime/core/StorageWatch.h"
#include "runtime/core/Tensor.h"
#include <memory>
#include <string>
#include <vector>

namespace dlc {

class LaunchPlan;

/// How a derived value is made.
struct DerivedSpec {
  std::shared_ptr<LaunchPlan> maker; ///< its one output is the value
  std::string key;                   ///< equal keys: the same function of the sources
  std::vector<int32_t> from;         ///< the maker's inputs: an input of the plan, or ~j: derived value j
  bool needed = true;                ///< false: only other derived values read it
};

/// A value and what it rests on.
struct DerivedValue {
  DerivedValue(std::string k, Tensor t);
  ~DerivedValue();
  std::string key;
  Tensor value;
};

/// The derived values of a plan for one set of state inputs. Immutable but for `generation`.
struct DerivedSet {
  struct Source {
    const Storage *storage;
    uint64_t stamp;
    uint32_t version;
    int64_t offset;
  };
  std::vector<Source> sources;
  std::vector<std::shared_ptr<const DerivedValue>> values; ///< null where not needed
  mutable std::atomic<uint64_t> generation{0};
};

/// The derived values of one plan. Any number of threads may ask.
class DerivedValues final : public StorageWatch::Listener {
public:
  /// `specs` in an order in which each reads earlier ones only.
  static std::shared_ptr<DerivedValues> make(std::vector<DerivedSpec> specs);
  const std::vector<DerivedSpec> &specs() const { return specs_; }
  /// The values for these inputs of the plan.
  std::shared_ptr<const DerivedSet> get(Span<const Tensor> inputs);
  void changed(const Storage *storage) override;
  /// Sets kept.
  size_t kept() const;

private:
  explicit DerivedValues(std::vector<DerivedSpec> specs);
  bool matches(const DerivedSet &set, Span<const Tensor> inputs, bool &sameMemory) const;
  std::shared_ptr<const DerivedSet> compute(Span<const Tensor> inputs);

  std::vector<DerivedSpec> specs_;
  std::vector<uint32_t> sources_; // inputs of the plan that the values read
  std::weak_ptr<DerivedValues> self_;
  mutable ForkMutex mutex_;
  std::vector<std::shared_ptr<const DerivedSet>> sets_; // most recently used first
};

struct DerivedStats {
  int64_t runs = 0;   ///< values computed so far
  int64_t values = 0; ///< values alive
  int64_t bytes = 0;  ///< their memory
};
DerivedStats derivedStats();

} // namespace dlc
