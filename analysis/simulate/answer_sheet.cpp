// truth::Truth of a run: labels, verdict, limiter, step boundaries, counterfactuals.
#include <algorithm>

#include "analysis/simulate/loop_program.h"
#include "analysis/simulate/scenario.h"
#include "analysis/simulate/verdict_shares.h"

namespace idlescope::simulate {
namespace {

using report::Verdict;

// Points by which a share may miss a threshold or another share and still be as good.
constexpr double kNear = 0.02;
constexpr double kMention = 0.02;  // analysis A6: smaller shares are not in a verdict
constexpr double kVerdict = 0.10;  // analysis A6 with amendment 16
constexpr double kHealthy = 0.50;
constexpr double kUnderfilled = 0.5;

// Time-weighted share of the SMs that the rank's kernels can fill.
double fill(const Program& program, uint16_t rank) {
  int64_t filled = 0;  // integers: the same sum on every machine
  int64_t total = 0;
  int64_t sms = program.machine.sm_count;
  for (const OpSpec& op : program.ops) {
    if (op.rank != rank || op.kind != trace::OP_KERNEL || op.communication) continue;
    filled += scale(op.duration_ns, std::min<int64_t>(sms, op.grid), sms);
    total += op.duration_ns;
  }
  return total > 0 ? static_cast<double>(filled) / static_cast<double>(total) : 1;
}

// A6 on true shares, largest first.
void decide(const std::vector<std::pair<double, Verdict>>& shares, double busy, double filled,
            truth::DeviceTruth* out) {
  Verdict healthy = filled < kUnderfilled ? report::UNDERFILLED : report::COMPUTE;
  double top = shares.empty() ? 0 : shares[0].first;
  bool is_healthy = busy >= 0.95 || (busy > kHealthy && top < kVerdict) || top < kMention;
  out->set_verdict(is_healthy ? healthy : shares[0].second);
  auto accept = [&](Verdict v) {
    if (v == out->verdict()) return;
    for (int other : out->accepted()) {
      if (other == v) return;
    }
    out->add_accepted(v);
  };
  for (size_t i = 0; i < shares.size(); ++i) {
    auto [share, verdict] = shares[i];
    if (share < kMention) break;
    bool second_line = is_healthy || i > 0;
    if (second_line && out->second() == report::VERDICT_UNSPECIFIED) out->set_second(verdict);
    bool tie = !is_healthy && top - share < kNear;
    bool near_verdict = is_healthy && i == 0 && share > kVerdict - kNear;
    bool feeding = (verdict == report::LAUNCH || verdict == report::HOST) && !is_healthy &&
                   (shares[0].second == report::LAUNCH || shares[0].second == report::HOST) &&
                   top < 1.5 * share;
    // Stalls of the whole run (another ledger): from 2 % on they may be named first.
    bool of_run = is_healthy && (verdict == report::PERIODIC || verdict == report::STARTUP);
    if (tie || near_verdict || feeding || of_run) accept(verdict);
  }
  if (!is_healthy && busy > kHealthy && top < kVerdict + kNear) accept(healthy);
  if (is_healthy && filled < kUnderfilled + 0.05 && filled > kUnderfilled - 0.05) {
    accept(healthy == report::COMPUTE ? report::UNDERFILLED : report::COMPUTE);
  }
}

void add_device(const Scenario& scenario, const Program& program, const Execution& run,
                uint16_t rank, truth::Truth* out) {
  truth::DeviceTruth* device = out->add_devices();
  device->set_pid(main_pid(program, rank, scenario.view));
  device->set_rank(rank);
  std::vector<LabelledSpan> spans = label_device(program, run, rank);
  if (spans.empty()) return;
  device->set_begin_ns(kRecordingBase + spans.front().begin_ns);
  for (const LabelledSpan& span : spans) {
    device->add_length_ns(static_cast<uint64_t>(span.end_ns - span.begin_ns));
    device->add_leaf(span.leaf);
  }
  uint32_t id = 0;
  for (const WindowRun& window : run.windows) {
    if (window.rank != rank) continue;
    truth::TrueWindow* w = device->add_windows();
    w->set_window_id(++id);
    w->set_begin_ns(kRecordingBase + window.begin_ns);
    w->set_end_ns(kRecordingBase + window.end_ns);
  }
  for (const StepMark& mark : program.steps) {
    if (mark.rank != rank || !mark.macro) continue;
    device->add_step_end_host_ns(kRecordingBase + run.mark_end_ns[mark.mark]);
    device->add_step_end_device_ns(kRecordingBase + device_step_end(run, mark));
  }
  device->set_first_steady_step(program.first_steady_step);
  device->set_micro_steps(program.micro_steps);
  SteadyShares steady = steady_shares(program, run, rank, spans);
  if (steady.shares.empty() && steady.busy == 0) return;
  for (auto [share, v] : steady.shares) {
    truth::VerdictShare* verdict_share = device->add_shares();
    verdict_share->set_verdict(v);
    verdict_share->set_share(share);
  }
  device->set_compute_share(steady.busy);
  decide(steady.shares, steady.busy, fill(program, rank), device);

  Verdict verdict = device->verdict();
  if (verdict != report::DATA && verdict != report::STARTUP) return;
  for (const InjectedCause& cause : scenario.causes) {
    const Mechanism* m = find_mechanism(cause.id, cause.mechanism);
    if (m == nullptr || m->limiters.empty()) continue;
    if (device->limiter() == report::LIMITER_UNSPECIFIED) device->set_limiter(m->limiters[0]);
    for (report::Limiter limiter : m->limiters) device->add_accepted_limiters(limiter);
  }
}

// An injected cause whose removal saves about as much as the verdict's share is as good an
// answer: of a copy that blocks and the host work it exposes, either can go.
void accept_gains(const Scenario& scenario, truth::Truth* out) {
  if (out->devices_size() != 1) return;
  truth::DeviceTruth* device = out->mutable_devices(0);
  double top = device->shares_size() > 0 ? device->shares(0).share() : 0;
  for (size_t i = 0; i < scenario.causes.size(); ++i) {
    const Mechanism* m = find_mechanism(scenario.causes[i].id, scenario.causes[i].mechanism);
    bool known = m == nullptr || m->verdict == device->verdict();
    for (int v : device->accepted()) known = known || v == m->verdict;
    double gain = out->causes(static_cast<int>(i)).gain_share();
    if (!known && gain >= kVerdict && gain > 0.8 * top) device->add_accepted(m->verdict);
  }
}

Ns step_of(const LoopSpec& spec) {
  Program program = build_loop(spec);
  return mean_step(program, execute(program));
}

}  // namespace

truth::Truth truth_of(const Scenario& scenario, const Program& program, const Execution& run) {
  truth::Truth out;
  out.set_name(scenario.name);
  out.set_set(scenario.set);
  out.set_group(scenario.group);
  out.set_seed(scenario.seed);
  out.set_profile(scenario.profile);
  out.set_trap(scenario.trap);
  Ns step = mean_step(program, run);
  out.set_step_ns(step);
  for (uint16_t rank = 0; rank < program.ranks; ++rank)
    add_device(scenario, program, run, rank, &out);
  LoopSpec plain = job(scenario);
  plain.windows = {};
  Ns unrecorded = step_of(plain);
  auto counterfactual = [&](std::string change, Ns ns) {
    truth::Counterfactual* c = out.add_counterfactuals();
    c->set_change(std::move(change));
    c->set_step_ns(ns);
    return c;
  };
  counterfactual("none", unrecorded);
  for (uint32_t i = 0; i < scenario.causes.size(); ++i) {
    const InjectedCause& cause = scenario.causes[i];
    LoopSpec without = job(scenario, i);
    without.windows = {};
    Ns ns = step_of(without);
    counterfactual("without " + cause.id, ns);
    truth::Cause* c = out.add_causes();
    c->set_id(cause.id);
    c->set_mechanism(cause.mechanism);
    c->set_target_share(cause.target_share);
    c->set_amount_ns(cause.amount_ns);
    c->set_gain_share(unrecorded > 0
                          ? static_cast<double>(unrecorded - ns) / static_cast<double>(unrecorded)
                          : 0);
  }
  accept_gains(scenario, &out);
  for (Fix& fix : fixes(plain)) {
    truth::Counterfactual* c = counterfactual("fix " + fix.id, step_of(fix.spec));
    for (auto& [name, value] : fix.parameters) (*c->mutable_parameters())[name] = value;
  }
  for (trace::Kind kind : scenario.view.removed) out.add_removed_kinds(trace::Kind_Name(kind));
  for (report::Leaf leaf : scenario.abstain_leaves) out.add_abstain_leaves(leaf);
  return out;
}

}  // namespace idlescope::simulate
