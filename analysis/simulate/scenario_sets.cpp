#include "analysis/simulate/scenario_sets.h"

#include "analysis/simulate/special_scenarios.h"

#include <algorithm>
#include <array>
#include <string>

namespace idlescope::simulate {
namespace {

enum : uint64_t { kShape = 0x400, kView = 0x500 };

constexpr std::array<const char*, 4> kProfiles = {"clean", "skew", "lossy", "sparse"};
constexpr std::array<double, 3> kShares = {0.05, 0.20, 0.50};

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

// Windows and nuisances of a profile.
void apply_profile(Scenario* s) {
  Draws d(key(s->seed, kView));
  ViewSpec& v = s->view;
  v.seed = key(s->seed, 0x77);
  LoopSpec& j = s->base;
  auto window = [&](size_t i, int begin, int end, bool middle) {
    j.windows[i] = {begin, end, middle};
  };
  int last = j.steps - 3;
  if (s->profile == "clean") {
    window(0, 2, last, false);
  } else if (s->profile == "skew") {
    window(0, 3, last, true);
    v.clock_error_ns = 20000;
    v.permute_threads = true;
  } else if (s->profile == "lossy") {
    window(0, 3, last, true);
    v.clock_error_ns = 5000;
    v.drop_per_million = 1000;
    v.rename_kernels = true;
  } else {  // sparse: two windows, no marks, graphs as one record each
    int half = j.steps / 2;
    window(0, 6, half - 4, true);
    window(1, half + 4, last, true);
    v.clock_error_ns = 10000;
    v.permute_threads = true;
    v.opaque_graphs = true;
    v.driver_calls = false;
    v.removed = {trace::KIND_STEP, trace::KIND_NVTX};
  }
}

}  // namespace

void finish_scenario(Scenario* s) {
  for (const InjectedCause& cause : s->causes) {
    const Mechanism* m = find_mechanism(cause.id, cause.mechanism);
    if (m == nullptr || m->prepare == nullptr) continue;
    int64_t before = s->base.loader.workers;
    m->prepare(&s->base);
    // The same healthy load on another number of workers; a quarter of it without workers.
    LoaderSpec& l = s->base.loader;
    if (l.workers == before) continue;
    int64_t quarters = l.workers == 0 ? 1 : 4 * l.workers;
    for (Ns* ns : {&l.cpu_ns, &l.read_ns, &l.collate_ns}) *ns = *ns * quarters / (4 * before);
  }
  apply_profile(s);
}

LoopSpec draw_job(uint64_t seed, std::string_view cause) {
  Draws d(key(seed, kShape));
  LoopSpec s;
  s.seed = seed;
  s.steps = static_cast<int>(d.uniform(72, 96, 1));
  ModelSpec& m = s.model;
  m.layers = static_cast<int>(d.uniform(4, 9, 2));
  m.kernels_per_layer = static_cast<int>(d.uniform(3, 5, 3));
  m.kernel_ns = d.uniform(60000, 220000, 4);
  m.kernel_sigma = d.uniform(300, 1100, 5);
  m.dispatch_ns = d.uniform(2500, 9000, 6);
  m.optimizer_kernels = static_cast<int>(d.uniform(3, 8, 7));
  m.autograd_thread = d.chance(800, 8);
  bool plain = starts_with(cause, "launch") || starts_with(cause, "sync") ||
               starts_with(cause, "host-blocked");
  bool one_rank = !starts_with(cause, "comm");
  if (!plain && one_rank && !starts_with(cause, "alloc") && !starts_with(cause, "compile")) {
    m.graph = d.chance(120, 9);
    m.two_streams = !m.graph && d.chance(80, 10);
  }
  if (!plain && one_rank && !starts_with(cause, "epoch")) {
    int64_t shape = d.uniform(0, 99, 11);
    if (shape < 15) s.micro_steps = 2;
    if (shape >= 15 && shape < 22) s.micro_steps = 4;
    if (shape >= 22 && shape < 29 && !m.graph) s.gan = true;
    if (shape >= 29 && shape < 37) {
      s.evaluation.every = 25;
      s.evaluation.batches = 4;
    }
  }
  int rounds = s.micro_steps * (s.gan ? 2 : 1);
  if (rounds > 1) s.steps = s.steps * 2 / 3;
  Ns compute = 3 * m.layers * m.kernels_per_layer * m.kernel_ns;

  LoaderSpec& l = s.loader;
  l.workers = static_cast<int>(d.uniform(2, 6, 12));
  l.pin = !starts_with(cause, "xfer-pageable") &&
          (d.chance(800, 13) || starts_with(cause, "data-pin") || starts_with(cause, "alloc-lock"));
  l.cpu_ns = compute * l.workers * d.uniform(20, 45, 14) / 100;
  l.read_ns = l.cpu_ns / 10;
  l.collate_ns = l.cpu_ns / 12;
  l.pickle_ns = d.uniform(100000, 500000, 15);
  l.pin_ns = l.pin ? d.uniform(100000, 600000, 16) : 0;
  l.cv_permille = d.uniform(30, 200, 17);
  int64_t path = d.uniform(0, 99, 18);
  s.transfer.bytes = static_cast<uint64_t>(d.uniform(1 << 19, 6 << 20, 19));
  s.transfer.path = path < 60   ? CopyPath::kPinnedAsync
                    : path < 85 ? CopyPath::kPrefetched
                                : CopyPath::kNoCopy;
  if (!l.pin && s.transfer.path != CopyPath::kNoCopy) {
    s.transfer.path = CopyPath::kPageable;
    s.transfer.bytes = static_cast<uint64_t>(d.uniform(1 << 16, 1 << 18, 20));
  }
  if (!starts_with(cause, "sync") && d.chance(500, 21)) {
    s.sync.kind = SyncKind::kItem;
    s.sync.at_end = true;
    s.sync.every_steps = 10;
  }
  s.host.python_ns = d.uniform(60000, 300000, 22);
  return s;
}

Scenario single_scenario(std::string_view cause, std::string_view mechanism, double share,
                         std::string_view profile, uint64_t seed) {
  Scenario s;
  s.seed = seed;
  s.profile = std::string(profile);
  s.base = draw_job(seed, cause);
  if (!cause.empty() && cause != "none") {
    const Mechanism* m = find_mechanism(cause, mechanism);
    if (m != nullptr) s.causes.push_back({m->cause, m->name, share, 0});
  }
  std::string percent = std::to_string(static_cast<int>(share * 100 + 0.5));
  s.name = std::string(cause) + (s.causes.empty() ? "" : "." + s.causes[0].mechanism) + "." +
           percent + "." + s.profile + "." + std::to_string(seed);
  finish_scenario(&s);
  return s;
}

namespace {

// Raised when failures of the reporting set have been looked at: its seeds are burnt then.
constexpr uint64_t kReportingGeneration = 2;

// Seeds of the sets never meet: tuning seeds are even, reporting seeds odd.
class Seeds {
 public:
  explicit Seeds(std::string_view set)
      : derived_(set == "reporting"), next_(set == "tuning" ? 2'000'000 : 1'000'001) {}

  // Reporting seeds follow from what the scenario is, so that a new mechanism does not move
  // the others'. The older sets count.
  uint64_t next(std::string_view what, int repeat) {
    if (derived_) {
      uint64_t hash = key(kReportingGeneration, static_cast<uint64_t>(repeat));
      for (char c : what) hash = key(hash, static_cast<unsigned char>(c));
      return (hash >> 32) | 1;
    }
    uint64_t seed = next_;
    next_ += 2;
    return seed;
  }

 private:
  bool derived_;
  uint64_t next_;
};

}  // namespace

std::vector<Scenario> scenario_set(std::string_view set, size_t count) {
  bool reporting = set != "tuning";
  std::vector<Scenario> all;
  Seeds seeds(set);
  int repeats = set == "reporting" ? 3 : 2;
  for (const Mechanism& m : mechanisms()) {
    if (m.reporting && !reporting) continue;
    for (double share : kShares) {
      for (const char* profile : kProfiles) {
        std::string what = std::string(m.cause) + "." + m.name + "." + profile + "." +
                           std::to_string(static_cast<int>(share * 100 + 0.5));
        for (int i = 0; i < repeats; ++i) {
          all.push_back(single_scenario(m.cause, m.name, share, profile, seeds.next(what, i)));
        }
      }
    }
  }
  for (int i = 0; i < 50; ++i) all.push_back(mixed_scenario(2, reporting, seeds.next("mix2", i)));
  for (int i = 0; i < 20; ++i) all.push_back(mixed_scenario(3, reporting, seeds.next("mix3", i)));
  for (const Trap& trap : traps()) {
    if (trap.reporting && !reporting) continue;
    for (int i = 0; i < static_cast<int>(kProfiles.size()); ++i) {
      const char* profile = kProfiles[static_cast<size_t>(i)];
      all.push_back(trap_scenario(trap, profile, seeds.next(trap.name, i)));
    }
  }
  for (const RemovedEvidence& removed : removed_evidence()) {
    if (removed.reporting && !reporting) continue;
    // 72 of them are reported on; a rate of 95 % needs more than a few dozen.
    for (int i = 0; i < (set == "reporting" ? 6 : 4); ++i) {
      all.push_back(removed_scenario(removed, seeds.next(removed.name, i)));
    }
  }
  for (Scenario& scenario : all) scenario.set = std::string(set);
  if (count > 0 && count < all.size()) {
    std::vector<Scenario> some;
    for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
    all = std::move(some);
  }
  return all;
}

}  // namespace idlescope::simulate
