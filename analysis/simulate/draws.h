// Random numbers that are equal on every machine: counter-based, integer arithmetic only
// (no libm, no std:: distributions). A draw depends on (seed, what, index) and on nothing
// that was drawn before, so that a changed program (counterfactual) keeps the service times
// of everything that was not changed.
#pragma once

#include <cstdint>

namespace idlescope::simulate {

using Ns = int64_t;

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}

  // 64 independent bits for (what, index).
  uint64_t bits(uint64_t what, uint64_t index = 0) const;

  // Uniform integer in [low, high].
  int64_t uniform(int64_t low, int64_t high, uint64_t what, uint64_t index = 0) const;

  // True with a probability of `permille` / 1000.
  bool chance(int64_t permille, uint64_t what, uint64_t index = 0) const;

  // Bell-shaped around mean (sum of four uniforms), never below mean / 4.
  Ns jitter(Ns mean, int64_t cv_permille, uint64_t what, uint64_t index = 0) const;

  // Long right tail: mean · 2^(sigma·z) with sigma in thousandths of an octave, scaled to
  // keep the median at `median`.
  Ns tail(Ns median, int64_t sigma_permille, uint64_t what, uint64_t index = 0) const;

 private:
  uint64_t seed_;
};

// a·b/c without overflow of the product; rounds down. c > 0.
int64_t scale(int64_t a, int64_t b, int64_t c);

// Mixes two numbers into one key for Draws.
uint64_t key(uint64_t a, uint64_t b);

}  // namespace idlescope::simulate
