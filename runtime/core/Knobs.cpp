// Reading the environment once; unknown DLC_* variables warn, since a typo must not pass silently.
#include "runtime/core/Knobs.h"
#include "runtime/core/Error.h"
#include "runtime/core/ForkSafe.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

extern char **environ;

namespace dlc {
namespace {

void (*warningSink)(const std::string &) = nullptr;

void parse(const char *, const char *text, std::string &out) { out = text; }
void parse(const char *env, const char *text, int64_t &out) {
  char *end = nullptr;
  long long v = std::strtoll(text, &end, 10);
  if (end == text || *end)
    warnOnce(str(env, "=", text, " is not an integer and is ignored"));
  else
    out = v;
}
void parse(const char *env, const char *text, bool &out) {
  std::string t = text;
  if (t == "1" || t == "true")
    out = true;
  else if (t == "0" || t == "false" || t.empty())
    out = false;
  else
    warnOnce(str(env, "=", text, " is neither 0 nor 1 and is ignored"));
}

const std::set<std::string> kTopics = {"graph",  "guards",       "recompiles", "breaks",
                                       "fusion", "compile_time", "tuning",     "all"};

/// What a knob may be, where its type allows more. Words: one of them; else a number in [low, high].
struct Limit {
  const char *knob;
  std::vector<std::string> words;
  int64_t low = 0, high = 0;
};
const std::vector<Limit> &limits() {
  static const auto *all = new std::vector<Limit>{
      {"mode", {"eager", "interpret", "no_fuse", "full"}},
      {"gemmIsa", {"", "avx2"}},
      {"fault", {"", "compile", "run", "captured", "simplified", "fused", "scheduled", "binary"}},
      {"fusionFuel", {}, -1, int64_t(1) << 40},
      {"cacheLimitMb", {}, 0, int64_t(1) << 40},
      {"compileThreads", {}, 0, 256},
      {"tuningSeconds", {}, 0, 86400},
      {"numThreads", {}, 0, 256}};
  return *all;
}

/// Takes a value of the environment unless it is not allowed.
template <class T> void adopt(const char *name, const char *env, const char *text, T &value) {
  T wanted = value;
  parse(env, text, wanted);
  std::string fault = knobFault(name, wanted);
  if (fault.empty())
    value = wanted;
  else
    warnOnce(str(env, "=", text, " is ignored: ", fault));
}

Knobs readEnvironment() {
  Knobs k;
  std::set<std::string> known;
#define DLC_X(name, type, def, env, doc)                                                                               \
  known.insert(env);                                                                                                   \
  if (const char *text = std::getenv(env))                                                                             \
    adopt(#name, env, text, k.name);
  DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
  for (char **e = environ; e && *e; ++e)
    if (std::strncmp(*e, "DLC_", 4) == 0) {
      std::string name(*e, std::strcspn(*e, "="));
      if (!known.count(name))
        warnOnce(str("environment variable ", name, " is unknown to dlc and ignored; dlc.show_config() lists them"));
    }
  std::istringstream topics(k.logs);
  for (std::string topic; std::getline(topics, topic, ',');)
    if (!kTopics.count(topic))
      warnOnce(str("DLC_LOGS names `", topic, "`, which is no topic; dlc.show_config() lists them"));
  return k;
}

} // namespace

std::string knobFault(const std::string &name, const std::string &value) {
  for (const Limit &l : limits())
    if (name == l.knob && std::find(l.words.begin(), l.words.end(), value) == l.words.end()) {
      std::string all;
      for (const std::string &word : l.words)
        all += (all.empty() ? "'" : ", '") + word + "'";
      return "'" + value + "' is none of " + all;
    }
  return {};
}

std::string knobFault(const std::string &name, int64_t value) {
  for (const Limit &l : limits())
    if (name == l.knob && (value < l.low || value > l.high))
      return str(value, " is not from ", l.low, " to ", l.high);
  return {};
}

Knobs &knobs() {
  static Knobs *k = new Knobs(readEnvironment());
  return *k;
}

std::string describeKnobs() {
  std::ostringstream os;
  const Knobs &k = knobs();
#define DLC_X(name, type, def, env, doc) os << env << "=" << k.name << "  # " << doc << "\n";
  DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
  return os.str();
}

bool logEnabled(const char *topic) {
  const std::string &logs = knobs().logs;
  if (logs.empty())
    return false;
  std::string padded = "," + logs + ",";
  return padded.find(",all,") != std::string::npos || padded.find(str(",", topic, ",")) != std::string::npos;
}

void logLine(const char *topic, const std::string &text) {
  std::string line = str("[dlc ", topic, "] ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void setWarningSink(void (*sink)(const std::string &)) { warningSink = sink; }

void warnOnce(const std::string &text) {
  static auto *mutex = new ForkMutex;
  static auto *seen = new std::set<std::string>;
  {
    std::lock_guard<ForkMutex> lock(*mutex);
    if (!seen->insert(text).second)
      return;
  }
  if (warningSink)
    warningSink(text);
  else
    logLine("warning", text);
}

} // namespace dlc
