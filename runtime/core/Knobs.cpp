// Reading the environment once; unknown DLC_* variables warn, since a typo must not pass silently.
#include "runtime/core/Knobs.h"
#include "runtime/core/Error.h"
#include <cstdlib>
#include <cstring>
#include <mutex>
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

const std::set<std::string> kTopics = {"graph", "guards", "recompiles", "breaks", "fusion", "compile_time", "all"};

Knobs readEnvironment() {
  Knobs k;
  std::set<std::string> known;
#define DLC_X(name, type, def, env, doc)                                                                               \
  known.insert(env);                                                                                                   \
  if (const char *text = std::getenv(env))                                                                             \
    parse(env, text, k.name);
  DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
  for (char **e = environ; e && *e; ++e)
    if (std::strncmp(*e, "DLC_", 4) == 0) {
      std::string name(*e, std::strcspn(*e, "="));
      if (!known.count(name))
        warnOnce(str("environment variable ", name, " is unknown to dlc and ignored; dlc.show_config() lists them"));
    }
  if (k.mode != "eager" && k.mode != "interpret" && k.mode != "no_fuse" && k.mode != "full") {
    warnOnce(str("DLC_MODE=", k.mode, " is none of eager, interpret, no_fuse, full; using full"));
    k.mode = "full";
  }
  std::istringstream topics(k.logs);
  for (std::string topic; std::getline(topics, topic, ',');)
    if (!kTopics.count(topic))
      warnOnce(str("DLC_LOGS names `", topic, "`, which is no topic; dlc.show_config() lists them"));
  return k;
}

} // namespace

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
  static std::mutex *mutex = new std::mutex;
  static auto *seen = new std::set<std::string>;
  {
    std::lock_guard<std::mutex> lock(*mutex);
    if (!seen->insert(text).second)
      return;
  }
  if (warningSink)
    warningSink(text);
  else
    logLine("warning", text);
}

} // namespace dlc
