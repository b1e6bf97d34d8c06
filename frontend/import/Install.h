// MLIR-free entry of the compiler.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlc {

/// Makes the compiler the backend of compiled functions. Called once at start; cheap until something is compiled.
void installCompiler();

/// Data of the front end in the persistent cache, by what it was made from; the build is part of the key.
std::optional<std::string> loadKept(const std::string &source);
void storeKept(const std::string &source, const std::string &data);

/// What tuning found out, as (key, value) texts; takes one of them (false: it is not for this process); and what of a
/// key says so.
std::vector<std::pair<std::string, std::string>> tuningEntries();
bool loadTuningEntry(const std::string &key, const std::string &value);
std::string tuningHost();

} // namespace dlc
