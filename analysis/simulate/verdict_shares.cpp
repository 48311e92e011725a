#include "analysis/simulate/verdict_shares.h"

#include <algorithm>
#include <map>

#include "analysis/simulate/loop_program.h"

namespace idlescope::simulate {

using report::Verdict;

Verdict verdict_of(Leaf leaf) {
  if (leaf == report::DATA_STARTUP || leaf == report::STARTUP_LEAF) return report::STARTUP;
  if (leaf >= report::DATA_STARTUP && leaf <= report::DATA_UNSEEN) return report::DATA;
  if (leaf == report::BUSY_COPY_EXPOSED ||
      (leaf >= report::XFER_PAGEABLE && leaf <= report::XFER_OTHER)) {
    return report::TRANSFER;
  }
  if (leaf >= report::SYNC_SCALAR && leaf <= report::SYNC_IMPLICIT) return report::SYNC;
  if (leaf == report::BUSY_COMM_EXPOSED ||
      (leaf >= report::COMM_TRANSFER && leaf <= report::COMM_UNVERIFIED)) {
    return report::COMM;
  }
  if (leaf == report::LAUNCH_LEAF || leaf == report::DISPATCH) return report::LAUNCH;
  if (leaf >= report::HOST_OPTIMIZER && leaf <= report::HOST_EVALUATION) return report::HOST;
  if (leaf >= report::COMPILE_MODULE && leaf <= report::COMPILE_CAPTURE) return report::COMPILE;
  if (leaf >= report::ALLOC_DEVICE && leaf <= report::ALLOC_LOCK) return report::ALLOC;
  if (leaf == report::CKPT) return report::PERIODIC;
  return report::COMPUTE;
}

Ns device_step_end(const Execution& run, const StepMark& mark) {
  Ns host = run.mark_end_ns[mark.mark];
  return mark.last_op == kNone ? host : std::max(host, run.ops[mark.last_op].end_ns);
}

SteadyShares steady_shares(const Program& program, const Execution& run, uint16_t rank,
                           const std::vector<LabelledSpan>& spans) {
  SteadyShares out;
  std::vector<Ns> ends;
  for (const StepMark& mark : program.steps) {
    if (mark.rank == rank && mark.macro) ends.push_back(device_step_end(run, mark));
  }
  if (ends.size() <= program.first_steady_step) return out;
  Ns begin = ends[program.first_steady_step - 1];
  Ns end = ends.back();
  std::map<Verdict, Ns> by_verdict;
  Ns busy = 0;
  for (const LabelledSpan& span : spans) {
    Ns ns = std::min(span.end_ns, end) - std::max(span.begin_ns, begin);
    if (ns <= 0) continue;
    Verdict v = verdict_of(span.leaf);
    (v == report::COMPUTE ? busy : by_verdict[v]) += ns;
  }
  auto total = static_cast<double>(std::max<Ns>(end - begin, 1));
  for (auto [v, ns] : by_verdict) out.shares.emplace_back(static_cast<double>(ns) / total, v);
  std::sort(out.shares.begin(), out.shares.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  out.busy = static_cast<double>(busy) / total;
  return out;
}

ChargeAndGain charge_and_gain(const Scenario& scenario, uint32_t cause) {
  const InjectedCause& injected = scenario.causes[cause];
  const Mechanism* mechanism = find_mechanism(injected.id, injected.mechanism);
  ChargeAndGain out;
  if (mechanism == nullptr) return out;
  Ns steps[2] = {0, 0};
  std::vector<std::map<Verdict, double>> by_rank[2];
  for (uint32_t without : {0U, 1U}) {
    LoopSpec spec = job(scenario, without == 1 ? cause : kNone);
    spec.windows = {};
    Program program = build_loop(spec);
    Execution run = execute(program);
    steps[without] = mean_step(program, run);
    for (uint16_t rank = 0; rank < program.ranks; ++rank) {
      std::map<Verdict, double>& shares = by_rank[without].emplace_back();
      std::vector<LabelledSpan> spans = label_device(program, run, rank);
      for (auto [share, v] : steady_shares(program, run, rank, spans).shares) shares[v] = share;
    }
  }
  if (steps[0] <= 0) return out;
  // What a verdict has without the cause is not the cause's; in units of the longer step.
  double scale = static_cast<double>(steps[1]) / static_cast<double>(steps[0]);
  out.gain = 1 - scale;
  auto rise = [&](size_t rank, Verdict v) {
    return by_rank[0][rank][v] - scale * by_rank[1][rank][v];
  };
  size_t worst = 0;
  for (size_t rank = 1; rank < by_rank[0].size(); ++rank) {
    if (rise(rank, mechanism->verdict) > rise(worst, mechanism->verdict)) worst = rank;
  }
  out.charged = rise(worst, mechanism->verdict);
  for (auto [v, share] : std::map<Verdict, double>(by_rank[0][worst])) {
    if (v == mechanism->verdict) continue;
    bool blocking = v == report::SYNC || v == report::TRANSFER || v == report::ALLOC;
    if (blocking) {
      out.blocking += rise(worst, v);
    } else {
      out.elsewhere.emplace_back(rise(worst, v), v);
    }
  }
  std::sort(out.elsewhere.rbegin(), out.elsewhere.rend());
  return out;
}

}  // namespace idlescope::simulate
