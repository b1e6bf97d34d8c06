// From a recorded piece to a rolled one: cuts it at its loops and wires the parts.
#pragma once
#include "frontend/compile/RolledGraph.h"
#include "frontend/compile/Runs.h"
#include <optional>

namespace dlc {

/// A piece shorter than this holds no loop worth rolling.
constexpr size_t kMinRolled = 12;

/// Nothing if the piece has no loop worth rolling and is not too long for one part. Adds the loops' bodies to `known`.
/// With `mayLift`, index and size arguments may differ between the steps of a body.
std::optional<RolledGraph> roll(const trace::Piece &piece, KnownBodies &known, bool mayLift);

} // namespace dlc
