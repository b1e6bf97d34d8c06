// What can be told of a compiled function: its graphs, guards and events, as text and as JSON.
#include "frontend/compile/Cache.h"
#include <algorithm>
#include <map>

namespace dlc {

std::vector<CompileEvent> CompiledFunction::events() const {
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  return {events_.begin(), events_.end()};
}

size_t CompiledFunction::numEntries() const {
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  size_t n = 0;
  for (auto &[hash, bucket] : cache_->buckets)
    n += bucket->entries.size();
  return n;
}

std::string CompiledFunction::explain() const {
  std::ostringstream os;
  os << "compiled function " << name_ << "\n";
  {
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    size_t n = 0;
    for (auto &[hash, bucket] : cache_->buckets)
      for (auto &e : bucket->entries) {
        os << "graph " << n++ << ": " << e->graph.nodes.size() << " ops, " << e->graph.inputs.size() << " inputs, "
           << e->graph.outputs.size() << " outputs, ran " << e->hits << " times";
        if (e->compiled) {
          GraphStats s = e->compiled->stats();
          os << "; " << s.kernels << " kernels, " << s.libraryCalls << " library calls, " << s.otherSteps
             << " other steps, compiled in " << s.compileSeconds << " s";
        } else {
          os << "; runs in the interpreter" << (e->failure.empty() ? "" : ": " + e->failure);
        }
        os << "\n";
        for (size_t k = 0; k < e->graph.symbols.size(); ++k)
          os << "  size s" << k << " varies (now " << e->lastSymbols[k] << ")\n";
        for (const Fact &f : e->facts)
          os << "  guard: " << str(f) << "\n";
        if (e->compiled)
          os << e->compiled->describe();
      }
  }
  // One line for what happened again and again, in the order of the first time.
  std::vector<std::pair<std::string, int>> lines;
  for (const CompileEvent &e : events()) {
    static const char *kinds[] = {"compile", "recompile", "break", "fallback", "limit"};
    std::string line = str(kinds[static_cast<int>(e.kind)], e.loc.empty() ? "" : " at ", e.loc, ": ", e.text,
                           e.action.empty() ? "" : "; ", e.action);
    auto known = std::find_if(lines.begin(), lines.end(), [&](auto &l) { return l.first == line; });
    if (known == lines.end())
      lines.push_back({line, 1});
    else
      ++known->second;
  }
  for (auto &[line, times] : lines)
    os << line << (times > 1 ? str(" (", times, " times)") : "") << "\n";
  return os.str();
}

namespace {

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out + "\"";
}

/// Writes `"key": value` pairs with commas between them.
class JsonObject {
public:
  explicit JsonObject(std::ostream &os) : os_(os) { os_ << "{"; }
  ~JsonObject() { os_ << "}"; }
  std::ostream &key(const char *name) {
    os_ << (first_ ? "" : ", ") << '"' << name << "\": ";
    first_ = false;
    return os_;
  }

private:
  std::ostream &os_;
  bool first_ = true;
};

template <class C, class F> void jsonList(std::ostream &os, const C &items, F &&write) {
  os << "[";
  const char *separator = "";
  for (const auto &item : items) {
    os << separator;
    write(item);
    separator = ", ";
  }
  os << "]";
}

/// The user's lines in order of their first op, with the names of the ops of each.
std::vector<std::pair<std::string, std::vector<std::string>>> linesOf(const Graph &g) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  std::map<uint32_t, std::string> texts;
  std::map<std::string, size_t> at;
  for (const GraphNode &n : g.nodes) {
    auto [text, fresh] = texts.try_emplace(n.loc);
    if (fresh)
      text->second = locText(n.loc);
    auto [line, isNew] = at.try_emplace(text->second, lines.size());
    if (isNew)
      lines.push_back({text->second, {}});
    lines[line->second].second.push_back(n.op->name);
  }
  return lines;
}

void writeEntry(std::ostream &os, const CacheEntry &e, int64_t hits, const std::vector<int64_t> &symbols) {
  GraphStats s = e.compiled ? e.compiled->stats() : GraphStats();
  std::vector<std::string> guards, sizes;
  for (const Fact &f : e.facts)
    guards.push_back(str(f));
  for (size_t k = 0; k < symbols.size(); ++k)
    sizes.push_back(str("s", k, " = ", symbols[k]));
  JsonObject o(os);
  o.key("ops") << e.graph.nodes.size();
  o.key("inputs") << e.graph.inputs.size();
  o.key("outputs") << e.graph.outputs.size();
  o.key("hits") << hits;
  o.key("compiled") << (e.compiled ? "true" : "false");
  o.key("failure") << quoted(e.failure);
  o.key("kernels") << s.kernels;
  o.key("library_calls") << s.libraryCalls;
  o.key("other_steps") << s.otherSteps;
  o.key("llvm_compilations") << s.llvmCompilations;
  o.key("compile_seconds") << s.compileSeconds;
  o.key("arena_bytes") << s.arenaBytes;
  o.key("plan") << quoted(e.compiled ? e.compiled->describe() : "");
  auto text = [&](const std::string &t) { os << quoted(t); };
  o.key("sizes"), jsonList(os, sizes, text);
  o.key("guards"), jsonList(os, guards, text);
  o.key("lines"), jsonList(os, linesOf(e.graph), [&](const auto &line) {
    JsonObject l(os);
    l.key("loc") << quoted(line.first);
    l.key("ops"), jsonList(os, line.second, text);
  });
}

} // namespace

std::string CompiledFunction::explainJson() const {
  struct Seen {
    std::shared_ptr<CacheEntry> entry;
    int64_t hits;
    std::vector<int64_t> symbols;
  };
  std::vector<Seen> all; // written without the lock: locations may need the GIL
  {
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    for (auto &[hash, bucket] : cache_->buckets)
      for (auto &e : bucket->entries)
        all.push_back({e, e->hits, e->lastSymbols});
  }
  std::ostringstream os;
  jsonList(os, all, [&](const Seen &s) { writeEntry(os, *s.entry, s.hits, s.symbols); });
  return os.str();
}

std::string CompiledFunction::graphJson() const {
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  std::shared_ptr<CompiledGraph> best;
  size_t most = 0;
  for (auto &[hash, bucket] : cache_->buckets)
    for (auto &e : bucket->entries)
      if (e->compiled && e->graph.nodes.size() >= most) {
        most = e->graph.nodes.size();
        best = e->compiled;
      }
  return best ? best->json() : "{}";
}

} // namespace dlc
