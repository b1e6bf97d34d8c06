// Text forms of a compiled graph.
#include "compiler/api/Executable.h"
#include "runtime/core/Knobs.h"
#include "runtime/exec/Profile.h"
#include <map>
#include <set>

namespace dlc::compiler {

CompileOptions CompileOptions::fromKnobs() {
  CompileOptions o;
  o.fuse = knobs().mode != "no_fuse";
  o.fusionFuel = knobs().fusionFuel;
  o.contract = knobs().contract;
  o.dumpDir = knobs().dumpDir;
  return o;
}

static std::string join(const std::vector<std::string> &parts, const char *separator, const char *quote = "") {
  std::string out;
  for (const std::string &p : parts)
    out += (out.empty() ? "" : separator) + std::string(quote) + p + quote;
  return out;
}

std::string Executable::describe() const {
  std::ostringstream os;
  auto line = [&](const StepInfo &i) {
    os << nameOf(i.stepClass) << ' ' << i.name;
    if (!i.ops.empty())
      os << " [" << join(i.ops, " ") << ']';
    os << ": reads " << evaluate(i.readBytes, Ints(hints_)) << " bytes, writes "
       << evaluate(i.writtenBytes, Ints(hints_)) << '\n';
  };
  for (const StepInfo &i : plan_->infos())
    line(i);
  if (plan_->derived())
    for (const DerivedSpec &d : plan_->derived()->specs())
      for (const StepInfo &i : d.maker->infos()) {
        os << "when a parameter has changed: ";
        line(i);
      }
  os << stats_.kernels << " kernels (" << stats_.distinctKernels << " distinct), " << stats_.libraryCalls
     << " library calls, " << (stats_.stateSteps ? str(stats_.stateSteps, " state steps, ") : "") << stats_.otherSteps
     << " other steps, " << stats_.memorySteps << " copies; arena " << stats_.arenaBytes << " bytes\n";
  return os.str();
}

std::string Executable::json() const {
  std::ostringstream os;
  std::map<uint32_t, size_t> writer;
  std::string edges;
  os << "{\"nodes\": [";
  size_t k = 0;
  for (const StepInfo &i : plan_->infos()) {
    os << (k ? ", " : "") << "{\"id\": " << k << ", \"class\": \"" << nameOf(i.stepClass) << "\", \"name\": \""
       << i.name << "\", \"ops\": [" << join(i.ops, ", ", "\"")
       << "], \"read\": " << evaluate(i.readBytes, Ints(hints_))
       << ", \"written\": " << evaluate(i.writtenBytes, Ints(hints_)) << '}';
    std::set<size_t> from;
    for (uint32_t b : i.reads)
      if (auto it = writer.find(b); it != writer.end())
        from.insert(it->second);
    for (size_t f : from)
      edges += (edges.empty() ? "" : ", ") + str("[", f, ", ", k, "]");
    for (uint32_t b : i.writes)
      writer[b] = k;
    ++k;
  }
  os << "], \"edges\": [" << edges << "]}";
  return os.str();
}

} // namespace dlc::compiler
