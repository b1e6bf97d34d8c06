// Rules of optimizer steps in functional form: they return the new values of the mutated parameters, in their order.
#pragma once
#include "runtime/rules/Rules.h"
#include <cmath>

namespace dlc::rules {

template <class V> std::vector<V> sgdStepRule(const SgdStepArgs<V> &a) {
  std::vector<V> params, buffers;
  for (size_t i = 0; i < a.params.size(); ++i) {
    V g = a.maximize ? -a.grads[i] : a.grads[i];
    if (!a.weight_decay.isConst(0))
      g = g + a.params[i] * a.weight_decay;
    if (!a.momentum_buffers.empty()) {
      V b = a.momentum_buffers[i] * a.momentum + (a.dampening.isConst(0) ? g : g - g * a.dampening);
      buffers.push_back(b);
      g = a.nesterov ? g + b * a.momentum : b;
    }
    params.push_back(a.params[i] - g * a.lr);
  }
  params.insert(params.end(), buffers.begin(), buffers.end());
  return params;
}

/// The corrections and 1 - beta are computed in f64, as the kernel does: 1 - 0.999f is off by 1e-5 of its size.
template <class V> std::vector<V> adamStepRule(const AdamStepArgs<V> &a) {
  V step = a.step + 1, exact = castTo(step, DType::F64);
  V stepSize = reciprocal(1 - pow(V(a.beta1), exact)) * a.lr, root2 = sqrt(1 - pow(V(a.beta2), exact));
  V one = full<V>(Dims(), 1.0, DType::F64), fresh1 = one - a.beta1, fresh2 = one - a.beta2;
  std::vector<V> params, averages, squares;
  for (size_t i = 0; i < a.params.size(); ++i) {
    V p = a.params[i], g = a.maximize ? -a.grads[i] : a.grads[i];
    if (!a.weight_decay.isConst(0)) {
      if (a.decoupled)
        p = p - p * a.lr * a.weight_decay;
      else
        g = g + p * a.weight_decay;
    }
    V gg = g * g;
    V m = a.exp_avgs[i] + (g - a.exp_avgs[i]) * fresh1;
    V v = a.exp_avg_sqs[i] * a.beta2 + gg * fresh2;
    averages.push_back(m);
    squares.push_back(v);
    params.push_back(p - stepSize * m / (sqrt(v) / root2 + a.eps));
  }
  params.insert(params.end(), averages.begin(), averages.end());
  params.insert(params.end(), squares.begin(), squares.end());
  params.push_back(step);
  return params;
}

template <class V> V totalNormRule(const TotalNormArgs<V> &a) {
  if (a.tensors.empty())
    return full<V>(Dims(), 0.0);
  V total;
  bool largest = std::isinf(a.norm_type);
  for (const V &t : a.tensors) {
    V part = largest ? amax(abs(t)) : a.norm_type == 2 ? sum(t * t) : sum(pow(abs(t), a.norm_type));
    total = !isDefined(total) ? part : largest ? maximum(total, part) : total + part;
  }
  return largest ? total : a.norm_type == 2 ? sqrt(total) : pow(total, 1 / a.norm_type);
}

template <class V> std::vector<V> clipByNormRule(const ClipByNormArgs<V> &a) {
  V factor = clamp_max(reciprocal(a.total_norm + 1e-6) * a.max_norm, 1.0);
  std::vector<V> r;
  for (const V &t : a.tensors)
    r.push_back(t * factor);
  return r;
}

} // namespace dlc::rules
