// Einstein summation by permutations and batched products, two operands at a time from the left.
#pragma once
#include "runtime/rules/Rules.h"
#include <string>

namespace dlc::rules {

/// Labels of one operand: letters, and for the dimensions under `...` characters from '0' on, rightmost '0'.
inline std::string einsumLabels(Str term, int64_t rank, const std::string &equation) {
  std::string labels;
  size_t dots = term.find("...");
  std::string letters;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      letters += '.';
      i += 2;
    } else if (term[i] != ' ') {
      DLC_REQUIRE(std::isalpha(static_cast<unsigned char>(term[i])), Runtime, "einsum: '", term[i],
                  "' in the equation '", equation, "' is no label\nuse letters, ',', '->' and '...'");
      letters += term[i];
    }
  }
  int64_t named = static_cast<int64_t>(letters.size()) - (dots != Str::npos ? 1 : 0);
  DLC_REQUIRE(dots != Str::npos ? named <= rank : named == rank, Runtime, "einsum: '", term, "' in the equation '",
              equation, "' has ", named, " labels for an operand of ", rank,
              " dimensions\nlabel each dimension, or use '...'");
  for (char c : letters)
    if (c != '.')
      labels += c;
    else
      for (int64_t k = rank - named; k-- > 0;)
        labels += static_cast<char>('0' + k);
  return labels;
}

/// Diagonals of repeated labels.
template <class V> V einsumDiagonals(V v, std::string &labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t j = labels.size(); j-- > i + 1;)
      if (labels[i] == labels[j]) {
        char c = labels[i];
        v = diagonal(v, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
        labels.erase(j, 1);
        labels.erase(i, 1);
        labels += c;
        i = static_cast<size_t>(-1);
        break;
      }
  return v;
}

/// Sums over the labels that nothing else needs.
template <class V> V einsumDrop(const V &v, std::string &labels, const std::string &needed) {
  Sizes dims;
  std::string kept;
  for (size_t i = 0; i < labels.size(); ++i)
    if (needed.find(labels[i]) == std::string::npos)
      dims.push_back(static_cast<int64_t>(i));
    else
      kept += labels[i];
  labels = kept;
  return dims.empty() ? v : sum(v, optionalDims(dims));
}

template <class V> V einsumArrange(const V &v, const std::string &from, const std::string &to) {
  Sizes order;
  for (char c : to)
    order.push_back(static_cast<int64_t>(from.find(c)));
  return from == to ? v : permute(v, order);
}

template <class V>
V einsumPair(const V &a, std::string la, const V &b, std::string lb, const std::string &needed, std::string &result) {
  V x = einsumDrop(a, la, needed + lb), y = einsumDrop(b, lb, needed + la);
  std::string batch, left, inner, right;
  for (char c : la)
    (lb.find(c) == std::string::npos ? left : needed.find(c) == std::string::npos ? inner : batch) += c;
  for (char c : lb)
    if (la.find(c) == std::string::npos)
      right += c;
  x = einsumArrange(x, la, batch + left + inner);
  y = einsumArrange(y, lb, batch + inner + right);
  Dims sx = sizesOf(x), sy = sizesOf(y), sizes, wideX, wideY;
  size_t nb = batch.size(), nl = left.size(), ni = inner.size();
  TensorMeta bx = TensorMeta::contiguous(DType::F32, Dims(sx.begin(), sx.begin() + nb)),
             by = TensorMeta::contiguous(DType::F32, Dims(sy.begin(), sy.begin() + nb));
  TensorMeta ix = TensorMeta::contiguous(DType::F32, Dims(sx.begin() + nb + nl, sx.end())),
             iy = TensorMeta::contiguous(DType::F32, Dims(sy.begin() + nb, sy.begin() + nb + ni));
  const TensorMeta *batches[] = {&bx, &by}, *inners[] = {&ix, &iy};
  Dims bs = broadcastSizes("einsum", batches), is = broadcastSizes("einsum", inners);
  Dims ls(sx.begin() + nb, sx.begin() + nb + nl), rs(sy.begin() + nb + ni, sy.end());
  auto join = [](std::initializer_list<const Dims *> parts) {
    Dims r;
    for (const Dims *p : parts)
      r.append(p->begin(), p->end());
    return r;
  };
  x = reshape(expand(x, join({&bs, &ls, &is})), Dims{product(bs), product(ls), product(is)});
  y = reshape(expand(y, join({&bs, &is, &rs})), Dims{product(bs), product(is), product(rs)});
  result = batch + left + right;
  return reshape(bmm(x, y), join({&bs, &ls, &rs}));
}

/// "ij,jk->ik" into terms and the labels of the result.
inline std::string splitEinsum(const std::string &equation, std::vector<std::string> &terms, bool &explicitOut) {
  size_t arrow = equation.find("->");
  explicitOut = arrow != std::string::npos;
  std::string in = equation.substr(0, arrow);
  for (size_t at = 0; at <= in.size();) {
    size_t comma = std::min(in.find(',', at), in.size());
    terms.push_back(in.substr(at, comma - at));
    at = comma + 1;
  }
  return explicitOut ? equation.substr(arrow + 2) : std::string();
}

template <class V> V einsumOf(Str text, Span<const V> operands) {
  std::string equation(text), out;
  std::vector<std::string> terms;
  bool explicitOut = false;
  std::string outTerm = splitEinsum(equation, terms, explicitOut);
  DLC_REQUIRE(terms.size() == operands.size(), Runtime, "einsum: the equation '", equation, "' has ", terms.size(),
              " terms for ", operands.size(), " operands\ngive one term an operand");
  int64_t broadcast = 0; // dimensions under `...`
  std::string all;
  std::vector<V> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    terms[i] = einsumLabels(terms[i], rankOf(operands[i]), equation);
    for (char c : terms[i])
      broadcast = std::max<int64_t>(broadcast, c < 'A' ? c - '0' + 1 : 0);
    all += terms[i];
    values.push_back(einsumDiagonals(operands[i], terms[i]));
  }
  std::string dots;
  for (int64_t k = broadcast; k-- > 0;)
    dots += static_cast<char>('0' + k);
  if (!explicitOut) {
    out = dots;
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::count(all.begin(), all.end(), c) == 1)
        out += c;
  } else {
    out = einsumLabels(outTerm,
                       static_cast<int64_t>(std::count_if(outTerm.begin(), outTerm.end(),
                                                          [](unsigned char c) { return std::isalpha(c); })) +
                           (outTerm.find("...") != std::string::npos ? broadcast : 0),
                       equation);
  }
  for (char c : out)
    DLC_REQUIRE(all.find(c) != std::string::npos && std::count(out.begin(), out.end(), c) == 1, Runtime,
                "einsum: label '", c, "' of the result of '", equation,
                "' is in no operand, or there twice\nname each label of the result once");
  V r = values[0];
  std::string labels = terms[0];
  for (size_t i = 1; i < values.size(); ++i) {
    std::string needed = out, next;
    for (size_t j = i + 1; j < terms.size(); ++j)
      needed += terms[j];
    r = einsumPair(r, labels, values[i], terms[i], needed, next);
    labels = next;
  }
  r = einsumDrop(r, labels, out);
  return einsumArrange(r, labels, out);
}

} // namespace dlc::rules
