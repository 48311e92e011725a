#include "analysis/simulate/draws.h"

#include <algorithm>

namespace idlescope::simulate {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

// splitmix64's finalizer (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Sum of four 16-bit uniforms minus its mean; standard deviation 37837.
constexpr int64_t kBellMean = 131070;
constexpr int64_t kBellDeviation = 37837;

int64_t bell(uint64_t bits) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>((bits >> (16 * i)) & 0xFFFF);
  return sum - kBellMean;
}

// 2^(x / 65536) · 65536 for |x| < 2^20: integer part by shift, fraction by a cubic with
// relative error below 2e-4 (coefficients of the minimax polynomial, in 1/65536).
int64_t exp2_q16(int64_t x) {
  int64_t whole = x >> 16;
  int64_t f = x & 0xFFFF;
  int64_t p = 5170;             // 0.0789
  p = 14702 + ((p * f) >> 16);  // 0.2243
  p = 45590 + ((p * f) >> 16);  // 0.6957
  p = 65536 + ((p * f) >> 16);
  return whole >= 0 ? p << whole : p >> -whole;
}

}  // namespace

uint64_t key(uint64_t a, uint64_t b) { return mix(a * 0xD6E8FEB86659FD93ULL + b); }

uint64_t Draws::bits(uint64_t what, uint64_t index) const {
  return mix(mix(seed_ ^ mix(what)) + index);
}

int64_t Draws::uniform(int64_t low, int64_t high, uint64_t what, uint64_t index) const {
  if (high <= low) return low;
  uint64_t span = static_cast<uint64_t>(high - low) + 1;
  return low + static_cast<int64_t>((static_cast<UnsignedWide>(bits(what, index)) * span) >> 64);
}

bool Draws::chance(int64_t permille, uint64_t what, uint64_t index) const {
  return uniform(0, 999, what, index) < permille;
}

Ns Draws::jitter(Ns mean, int64_t cv_permille, uint64_t what, uint64_t index) const {
  if (mean <= 0 || cv_permille <= 0) return std::max<Ns>(mean, 0);
  Ns spread = scale(mean, cv_permille, 1000);
  return std::max(mean / 4, mean + scale(spread, bell(bits(what, index)), kBellDeviation));
}

Ns Draws::tail(Ns median, int64_t sigma_permille, uint64_t what, uint64_t index) const {
  if (median <= 0 || sigma_permille <= 0) return std::max<Ns>(median, 0);
  int64_t octaves_q16 =
      scale(bell(bits(what, index)) * 65536 / 1000, sigma_permille, kBellDeviation);
  return scale(median, exp2_q16(octaves_q16), 65536);
}

int64_t scale(int64_t a, int64_t b, int64_t c) {
  Wide product = static_cast<Wide>(a) * b;
  Wide quotient = product / c;
  if (product % c != 0 && (product < 0) != (c < 0)) --quotient;
  return static_cast<int64_t>(quotient);
}

}  // namespace idlescope::simulate
