// Counter-based random numbers: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3"), and uniform and normal numbers from its bits. Element i of a call
// is a function of (seed, offset, i) alone, so the stream does not depend on threads, vector width
// or executor.
//
// The key is the seed; the counter is offset + i / 4 (64 bits, the upper 64 are 0), so an op of n
// elements uses (n + 3) / 4 blocks of the generator. Uniform element i takes word i % 4 of its
// block; of the four normal elements of a block, two share words 0 and 1 (as cosine and sine) and
// two share words 2 and 3.
#ifndef DLC_RUNTIME_SCALAR_PHILOX_H
#define DLC_RUNTIME_SCALAR_PHILOX_H

#include "runtime/scalar/Log.h"
#include "runtime/scalar/Trig.h"

namespace dlc::scalar {

/// The four 32-bit words of a block, as I64 values in [0, 2^32).
template <class V> struct PhiloxBlock {
  V word[4];
};

/// Runs Philox4x32-10 on counter `block` (its upper 64 bits 0) with key `seed`; both I64.
template <class B, class V> [[gnu::always_inline]] inline PhiloxBlock<V> philox(B &b, V seed, V block) {
  V mask = b.likeInt(block, 0xffffffff), width = b.likeInt(block, 32);
  auto low = [&](V v) { return b.bitAnd(v, mask); };
  auto high = [&](V v) { return b.shrLogical(v, width); };
  V k0 = low(seed), k1 = high(seed);
  V c0 = low(block), c1 = high(block), c2 = b.likeInt(block, 0), c3 = c2;
  V m0 = b.likeInt(block, 0xD2511F53), m1 = b.likeInt(block, 0xCD9E8D57);
  V w0 = b.likeInt(block, 0x9E3779B9), w1 = b.likeInt(block, 0xBB67AE85);
#pragma clang loop unroll(full)
  for (int round = 0; round < 10; ++round) {
    V p0 = b.mul(m0, c0), p1 = b.mul(m1, c2);
    V next0 = b.bitXor(b.bitXor(high(p1), c1), k0);
    V next2 = b.bitXor(b.bitXor(high(p0), c3), k1);
    c1 = low(p1);
    c3 = low(p0);
    c0 = next0;
    c2 = next2;
    k0 = low(b.add(k0, w0));
    k1 = low(b.add(k1, w1));
  }
  return {{c0, c1, c2, c3}};
}

/// A number in [0, 1) with 24 random bits from a 32-bit word (I64): F32.
template <class B, class V> inline auto unitFromBits(B &b, V word) {
  auto top = b.template convert<Kind::I32>(b.shrLogical(word, b.likeInt(word, 8)));
  auto f = b.template convert<Kind::F32>(top);
  return b.mul(f, b.like(f, 0x1p-24));
}

/// 32 random bits of element `index`, as I64 in [0, 2^32); all operands I64.
template <class B, class V> inline V philox_bits_(B &b, V seed, V offset, V index) {
  auto block = philox(b, seed, b.add(offset, b.shrLogical(index, b.likeInt(index, 2))));
  V lane = b.bitAnd(index, b.likeInt(index, 3));
  V word = block.word[0];
  for (int i = 1; i < 4; ++i)
    word = b.select(b.cmp(Cmp::Eq, lane, b.likeInt(lane, i)), block.word[i], word);
  return word;
}

/// Uniform number in [0, 1) of element `index`: F32 from I64 operands.
template <class B, class V> inline auto philox_uniform_(B &b, V seed, V offset, V index) {
  return unitFromBits(b, philox_bits_(b, seed, offset, index));
}

/// One of the two normal numbers of a pair of uniform ones by Box and Muller's transform: the cosine of
/// `turn` turns.
template <class B, class V> inline V normalFromUnits(B &b, V u, V turn) {
  V radius = b.sqrt(b.mul(b.like(u, -2), log_(b, b.sub(b.like(u, 1), u)))); // 1 - u is never 0
  return b.mul(radius, cos_(b, b.mul(turn, b.like(turn, 6.283185307179586))));
}

/// Standard normal number of element `index` by Box and Muller's transform: F32 from I64 operands.
template <class B, class V> inline auto philox_normal_(B &b, V seed, V offset, V index) {
  V zero = b.likeInt(index, 0);
  auto block = philox(b, seed, b.add(offset, b.shrLogical(index, b.likeInt(index, 2))));
  auto second = b.cmp(Cmp::Ne, b.bitAnd(index, b.likeInt(index, 2)), zero);
  auto odd = b.cmp(Cmp::Ne, b.bitAnd(index, b.likeInt(index, 1)), zero);
  auto u = unitFromBits(b, b.select(second, block.word[2], block.word[0]));
  auto v = unitFromBits(b, b.select(second, block.word[3], block.word[1]));
  auto turn = b.select(odd, b.sub(v, b.like(v, 0.25)), v); // the sine is the cosine a quarter turn back
  return normalFromUnits(b, u, turn);
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_PHILOX_H
