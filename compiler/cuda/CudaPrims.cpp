// Prints scalar primitives as device functions. The one file that instantiates every primitive for the text builder.
#include "compiler/cuda/CudaPrims.h"

#include "runtime/scalar/Primitives.h"
#include "runtime/scalar/TextBuilder.h"

namespace dlc::compiler {

using scalar::Kind;

// dlc_exp_f32; kinds that repeat are named once, so dlc_select_bool_f32.
static std::string functionName(std::string_view name, const std::vector<Kind> &kinds) {
  std::string text = "dlc_" + std::string(name);
  for (size_t i = 0; i < kinds.size(); ++i)
    if (i == 0 || kinds[i] != kinds[i - 1])
      text += std::string("_") + scalar::shortName(kinds[i]);
  return text;
}

const CudaPrim *CudaPrims::use(std::string_view name, const std::vector<Kind> &kinds) {
  std::string function = functionName(name, kinds);
  auto found = entries_.find(function);
  if (found != entries_.end())
    return &found->second.prim;
  if (kinds.empty() || !scalar::primitiveAccepts(name, kinds.back()))
    return nullptr;
  scalar::TextBuilder builder;
  std::vector<scalar::Text> operands;
  std::string parameters;
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::string parameter(1, static_cast<char>('a' + i));
    operands.push_back({parameter, kinds[i]});
    parameters += (i ? ", " : "") + std::string(scalar::cppName(kinds[i])) + " " + parameter;
  }
  scalar::Text result;
  if (!scalar::applyPrimitive(builder, name, operands.data(), operands.size(), result))
    return nullptr;
  if (builder.raises())
    parameters = std::string("long long *") + scalar::TextBuilder::kErrorName + ", " + parameters;
  Entry entry;
  entry.prim = {function, result.kind, builder.raises()};
  entry.text = std::string("__device__ __forceinline__ ") + scalar::cppName(result.kind) + " " + function + "(" +
               parameters + ") {\n" + builder.take({result}, "  ") + "  return " + result.name + ";\n}\n";
  return &entries_.emplace(function, std::move(entry)).first->second.prim;
}

std::string CudaPrims::asOperator(std::string_view name, const std::vector<Kind> &kinds,
                                  const std::vector<std::string> &operands) {
  static constexpr std::pair<std::string_view, const char *> kFloat[] = {
      {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}};
  static constexpr std::pair<std::string_view, const char *> kCompare[] = {
      {"eq", " == "}, {"ne", " != "}, {"lt", " < "}, {"le", " <= "}, {"gt", " > "}, {"ge", " >= "}};
  if (kinds.size() == 2 && kinds[0] == kinds[1]) {
    for (auto [word, symbol] : kFloat)
      if (word == name && scalar::isFloat(kinds[0]))
        return operands[0] + symbol + operands[1];
    for (auto [word, symbol] : kCompare)
      if (word == name)
        return operands[0] + symbol + operands[1];
  }
  if (name == "select" && kinds.size() == 3 && kinds[0] == Kind::Bool && kinds[1] == kinds[2])
    return operands[0] + " ? " + operands[1] + " : " + operands[2];
  if (name == "neg" && kinds.size() == 1 && scalar::isFloat(kinds[0]))
    return "-(" + operands[0] + ")";
  for (Kind to : {Kind::F32, Kind::F64})
    if (kinds.size() == 1 && name.substr(0, 3) == "to_" && name.substr(3) == scalar::shortName(to))
      return "(" + std::string(scalar::cppName(to)) + ")" + operands[0];
  return "";
}

std::string CudaPrims::text() const {
  std::string out;
  for (const auto &[name, entry] : entries_)
    out += entry.text + "\n";
  return out;
}

} // namespace dlc::compiler
