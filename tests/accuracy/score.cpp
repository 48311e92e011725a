#include "tests/accuracy/score.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "analysis/diagnose/device_pass.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/read/read.h"
#include "proto/report.pb.h"
#include "proto/truth.pb.h"
#include "tests/accuracy/peer_rules.h"

namespace idlescope::accuracy {
namespace {

using report::Verdict;

constexpr double kFalseAlarm = 0.05;  // F3: of the step
constexpr double kClaimed = 0.02;     // A6: smaller shares are not claimed

std::vector<Stretch> truth_stretches(const truth::DeviceTruth& device) {
  std::vector<Stretch> out;
  int64_t at = device.begin_ns();
  for (int i = 0; i < device.length_ns_size(); ++i) {
    auto end = at + static_cast<int64_t>(device.length_ns(i));
    Class label = class_of(device.leaf(i));
    if (label != Class::kBusy) out.push_back({at, end, label});
    at = end;
  }
  return out;
}

Verdict verdict_of(Class c) {
  switch (c) {
    case Class::kCompile:
      return report::COMPILE;
    case Class::kAlloc:
      return report::ALLOC;
    case Class::kCheckpoint:
      return report::PERIODIC;
    case Class::kData:
      return report::DATA;
    case Class::kTransfer:
      return report::TRANSFER;
    case Class::kSync:
      return report::SYNC;
    case Class::kComm:
      return report::COMM;
    case Class::kLaunch:
    case Class::kDispatch:
      return report::LAUNCH;
    case Class::kHost:
    case Class::kHostBlocked:
      return report::HOST;
    case Class::kUnknown:
      return report::CANNOT_TELL;
    default:
      return report::COMPUTE;
  }
}

bool accepted(const truth::DeviceTruth& device, Verdict verdict) {
  if (verdict == device.verdict()) return true;
  return std::find(device.accepted().begin(), device.accepted().end(), verdict) !=
         device.accepted().end();
}

void score_steps(const truth::DeviceTruth& device, const std::vector<model::DeviceStep>& steps,
                 Score* out) {
  if (steps.empty() || device.step_end_device_ns_size() < 2) return;
  out->has_steps = true;
  out->predicted_steps = steps.size();
  const auto& ends = device.step_end_device_ns();
  for (int quarter = 0; quarter < 4; ++quarter) {
    // True boundaries, moved by a part of the step that each begins.
    std::vector<int64_t> truth;
    for (int i = 0; i + 1 < ends.size(); ++i) {
      truth.push_back(ends.Get(i) + (ends.Get(i + 1) - ends.Get(i)) * quarter / 4 +
                      (quarter == 0 ? -60'000 : 0));
    }
    truth.push_back(ends.Get(ends.size() - 1));
    uint64_t right = 0;
    uint64_t inside = 0;
    for (const model::DeviceStep& step : steps) {
      auto first = std::lower_bound(truth.begin(), truth.end(), step.begin_ns);
      auto last = std::lower_bound(first, truth.end(), step.end_ns);
      right += last - first == 1 ? 1 : 0;
      inside += static_cast<uint64_t>(last - first);
    }
    if (right > out->right_steps || quarter == 0) {
      out->right_steps = right;
      out->true_steps = inside;
    }
  }
  out->step_error =
      std::abs(static_cast<double>(out->true_steps) / static_cast<double>(steps.size()) - 1);
}

// Shares by verdict over the same spans, from a confusion's margins.
void score_shares(const truth::DeviceTruth& device, const Confusion& confusion, Score* out) {
  std::map<Verdict, double> truth;
  std::map<Verdict, double> predicted;
  for (size_t t = 0; t < kClasses; ++t) {
    for (size_t p = 0; p < kClasses; ++p) {
      truth[verdict_of(static_cast<Class>(t))] += confusion[t][p];
      predicted[verdict_of(static_cast<Class>(p))] += confusion[t][p];
    }
  }
  for (auto& [verdict, share] : truth) {
    if (verdict == report::COMPUTE) continue;
    out->worst_share_error = std::max(out->worst_share_error, std::abs(share - predicted[verdict]));
  }
  Verdict top = device.shares_size() > 0 ? device.shares(0).verdict() : report::COMPUTE;
  if (top == report::STARTUP) top = report::DATA;
  out->share_error = std::abs(truth[top] - predicted[top]);
}

void score_abstention(const truth::Truth& truth, const diagnose::Diagnosis& d,
                      const diagnose::DeviceDiagnosis* device, Score* out) {
  out->cannot_tell = d.verdict == report::CANNOT_TELL;
  bool said = out->cannot_tell;
  for (const diagnose::Abstention& a : d.abstentions) {
    for (int leaf : truth.abstain_leaves()) said = said || static_cast<int>(a.leaf) == leaf;
    for (const std::string& kind : truth.removed_kinds()) said = said || a.missing_kind == kind;
  }
  if (device != nullptr) {
    for (const diagnose::LeafTime& leaf : device->leaves) {
      // Leaves that say themselves what cannot be told.
      if (leaf.leaf == report::COMM_UNVERIFIED || leaf.leaf == report::DATA_FETCH) said = true;
      for (int gone : truth.abstain_leaves()) {
        bool graded = leaf.grade_ns[2] * 2 > leaf.total_ns;  // grade C: said to be a default
        if (static_cast<int>(leaf.leaf) == gone && !graded) out->claimed += leaf.share;
      }
    }
  }
  out->abstained = said && (out->claimed < kClaimed || out->cannot_tell);
}

bool load(const std::string& path, truth::Truth* out) {
  std::ifstream in(path, std::ios::binary);
  return in && out->ParseFromIstream(&in);
}

void score_device(const truth::Truth& truth, const truth::DeviceTruth& device,
                  const model::Model& model, const diagnose::Diagnosis& d, uint32_t index,
                  Score* out) {
  diagnose::DevicePass pass = diagnose::run_device_pass(model, index);
  std::vector<Stretch> truth_time = truth_stretches(device);
  std::array<std::vector<Stretch>, kTools> labels;
  int64_t analysed = 0;
  for (const model::DeviceStep& span : pass.spans) analysed += span.end_ns - span.begin_ns;
  if (analysed <= 0) return;
  int64_t in_windows = 0;
  for (const truth::TrueWindow& w : device.windows()) in_windows += w.end_ns() - w.begin_ns();
  out->coverage =
      static_cast<double>(analysed) / static_cast<double>(std::max<int64_t>(in_windows, 1));
  for (size_t i = 0; i < pass.spans.size();) {
    // Neighbouring spans at once.
    size_t last = i;
    while (last + 1 < pass.spans.size() && pass.spans[last + 1].begin_ns == pass.spans[last].end_ns)
      ++last;
    for (const diagnose::GapPiece& piece :
         diagnose::causes_between(model, pass, pass.spans[i].begin_ns, pass.spans[last].end_ns)) {
      labels[0].push_back({piece.begin_ns, piece.end_ns, class_of(piece.leaf)});
    }
    i = last + 1;
  }
  for (size_t t = 1; t < kTools; ++t) labels[t] = peer_labels(static_cast<Tool>(t), model, index);
  for (size_t t = 0; t < kTools; ++t) {
    Confusion confusion{};
    std::vector<Stretch> inside;
    for (const model::DeviceStep& span : pass.spans) {
      compare(truth_time, labels[t], span.begin_ns, span.end_ns, &confusion);
      for (const Stretch& s : labels[t]) {
        int64_t a = std::max(s.begin_ns, span.begin_ns);
        int64_t b = std::min(s.end_ns, span.end_ns);
        if (a < b) inside.push_back({a, b, s.label});
      }
    }
    ToolScore& tool = out->tools[t];
    for (size_t a = 0; a < kClasses; ++a) {
      for (size_t b = 0; b < kClasses; ++b)
        tool.confusion[a][b] = confusion[a][b] / static_cast<double>(analysed);
    }
    Verdict verdict;
    double share = 0;
    if (t == 0) {
      bool chosen = d.chosen_device == index;
      verdict = chosen ? d.verdict : d.devices[index].verdict;
      for (const diagnose::VerdictShare& v : d.devices[index].verdict_shares) {
        if (v.verdict == verdict) share = v.share;
      }
      double unknown = 0;
      double absent = 0;
      for (size_t a = 0; a < kClasses; ++a) {
        for (size_t b = 0; b + 1 < kClasses; ++b) {
          absent += tool.confusion[a][b];
          if (static_cast<Class>(b) == Class::kUnknown) unknown += tool.confusion[a][b];
        }
      }
      out->unknown_of_absent = absent > 0 ? unknown / absent : 0;
      out->absent = absent;
      if (chosen) {
        out->has_limiter = device.limiter() != report::LIMITER_UNSPECIFIED &&
                           accepted(device, verdict) && (verdict == report::DATA);
        out->limiter = report::Limiter_Name(d.limiter);
        out->true_limiter = report::Limiter_Name(device.limiter());
        out->limiter_right =
            std::find(device.accepted_limiters().begin(), device.accepted_limiters().end(),
                      d.limiter) != device.accepted_limiters().end();
      }
    } else {
      Class c = peer_verdict(static_cast<Tool>(t), inside, analysed);
      verdict = verdict_of(c);
      share = 1;
    }
    tool.verdict = report::Verdict_Name(verdict);
    tool.top1 = accepted(device, verdict);
    if (t > 0 && device.verdict() == report::UNDERFILLED && verdict == report::COMPUTE)
      tool.top1 = false;
    bool harmless = verdict == report::COMPUTE || verdict == report::UNDERFILLED ||
                    verdict == report::CANNOT_TELL;
    tool.false_alarm =
        truth.trap() && !harmless && share > kFalseAlarm && !accepted(device, verdict);
  }
  score_shares(device, out->tools[0].confusion, out);
  if (!pass.window_only) score_steps(device, pass.spans, out);
  out->scored = true;
}

}  // namespace

const char* tool_name(Tool tool) {
  constexpr std::array<const char*, kTools> kNames = {"idlescope", "tensorboard_rules", "hta_rules",
                                                      "nsys_ai_rules"};
  return kNames[static_cast<size_t>(tool)];
}

Score score_recording(const std::string& directory) {
  Score out;
  truth::Truth truth;
  if (!load(directory + "/truth.pb", &truth)) {
    out.name = directory;
    out.fault = "no truth.pb";
    return out;
  }
  out.name = truth.name();
  out.group = truth.group();
  out.profile = truth.profile();
  size_t dot = truth.name().find('.');
  out.cause = truth.group() == "mix" ? "mix"
              : truth.causes_size() > 0 && truth.group() == "single"
                  ? truth.causes(0).id() + "." + truth.causes(0).mechanism()
                  : truth.name().substr(dot + 1, truth.name().find('.', dot + 1) - dot - 1);
  auto recording = read::read_paths({directory});
  if (!recording) {
    out.fault = "not readable";
    return out;
  }
  diagnose::Analysis analysis = diagnose::analyze(std::move(*recording));
  const diagnose::Diagnosis& d = analysis.diagnosis;
  const truth::DeviceTruth* chosen = nullptr;
  uint32_t index = read::kNone;
  // The device that the verdict is about; without one the first rank's truth.
  for (uint32_t i = 0; i < analysis.model.devices.size(); ++i) {
    const read::Process& process = analysis.model.process_of(analysis.model.devices[i]);
    for (const truth::DeviceTruth& t : truth.devices()) {
      if (t.pid() == process.header.process().pid() &&
          (chosen == nullptr || i == d.chosen_device)) {
        chosen = &t;
        index = i;
      }
    }
  }
  const truth::DeviceTruth& device = chosen != nullptr ? *chosen : truth.devices(0);
  out.true_verdict = report::Verdict_Name(device.verdict());
  if (chosen != nullptr) {
    score_device(truth, device, analysis.model, d, index, &out);
  }
  if (!out.scored) {
    out.tools[0].verdict = report::Verdict_Name(d.verdict);
    out.tools[0].top1 = accepted(device, d.verdict);
  }
  const diagnose::DeviceDiagnosis* diagnosed =
      d.chosen_device < d.devices.size() ? &d.devices[d.chosen_device] : nullptr;
  score_abstention(truth, d, diagnosed, &out);
  return out;
}

}  // namespace idlescope::accuracy
