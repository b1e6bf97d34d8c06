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
  entry.text = std::string("static __device__ __forceinline__ ") + scalar::cppName(result.kind) + " " + function + "(" +
               parameters + ") {\n" + builder.take({result}, "  ") + "  return " + result.name + ";\n}\n";
  return &entries_.emplace(function, std::move(entry)).first->second.prim;
}

std::string CudaPrims::text() const {
  std::string out;
  for (const auto &[name, entry] : entries_)
    out += entry.text + "\n";
  return out;
}

} // namespace dlc::compiler
