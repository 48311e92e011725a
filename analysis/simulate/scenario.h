// A scenario: a healthy job, causes of idleness put into it, and what it truly is: verdict,
// limiter, labels, gain of removing each cause or applying each fix.
//
// In: cause ids, target shares, seed. Out: LoopSpec of the job with the causes tuned so that
// removing each one saves the wanted share of the step; proto/truth.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/simulate/device_labels.h"
#include "analysis/simulate/loop_spec.h"
#include "analysis/simulate/view.h"
#include "proto/truth.pb.h"

namespace idlescope::simulate {

struct InjectedCause {
  std::string id;         // "data-storage"
  std::string mechanism;  // "cold-read"
  double target_share = 0.2;
  Ns amount_ns = 0;  // per step; set by tune()
};

// One way in which a cause comes about. `apply` writes it into a spec with the given
// strength; with `removed` it writes everything but the cause itself.
struct Mechanism {
  const char* cause;
  const char* name;
  bool reporting;  // belongs to the reporting set only
  report::Verdict verdict;
  void (*apply)(LoopSpec* spec, Ns amount_ns, bool removed);
  void (*prepare)(LoopSpec* spec);        // shape of the job that the mechanism needs; may be null
  std::vector<report::Limiter> limiters;  // true one first, then as good ones
};

const std::vector<Mechanism>& mechanisms();
const Mechanism* find_mechanism(std::string_view cause, std::string_view name);

struct Scenario {
  std::string name;
  std::string set;
  std::string group = "single";  // "single", "mix", "trap", "removed"
  std::string profile = "clean";
  uint64_t seed = 1;
  std::vector<InjectedCause> causes;
  bool trap = false;
  LoopSpec base;  // without causes
  ViewSpec view;
  std::vector<report::Leaf> abstain_leaves;  // with view.removed
};

// The job with all causes but `without` (kNone: all of them).
LoopSpec job(const Scenario& scenario, uint32_t without = kNone);

// Finds the strength of each cause.
void tune(Scenario* scenario);

// Mean steady step of the first rank.
Ns mean_step(const Program& program, const Execution& run);

struct Fix {
  std::string id;
  std::vector<std::pair<std::string, std::string>> parameters;
  LoopSpec spec;
};

// Fixes that make sense for the job, each as the changed job.
std::vector<Fix> fixes(const LoopSpec& spec);

truth::Truth truth_of(const Scenario& scenario, const Program& program, const Execution& run);

}  // namespace idlescope::simulate
