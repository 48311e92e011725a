#include "tests/accuracy/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace idlescope::accuracy {
namespace {

constexpr double kPresent = 1e-3;  // classes with less true time are not scored

struct Ratio {
  uint64_t good = 0;
  uint64_t all = 0;
  void add(bool right) {
    ++all;
    good += right ? 1 : 0;
  }
  double value() const {
    return all == 0 ? 0 : static_cast<double>(good) / static_cast<double>(all);
  }
  std::string text() const { return fmt::format("{:.3f} ({}/{})", value(), good, all); }
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Totals {
  std::array<Confusion, kTools> confusion{};
  std::array<Ratio, kTools> top1;
  std::array<Ratio, kTools> false_alarm;
  std::map<std::string, Ratio> by_cause;
  std::map<std::string, Ratio> by_group;
  std::map<std::string, Ratio> by_profile;
  Ratio limiter;
  Ratio steps_right;       // recordings whose boundaries are all right (99 %)
  Ratio boundaries;        // steps that hold exactly one true boundary
  Ratio abstained;         // removed evidence: right to abstain
  Ratio wrong_abstention;  // complete evidence: CANNOT_TELL all the same
  Ratio unknown_small;     // complete evidence: UNKNOWN at most 5 % of absent time
  double unknown = 0;      // steps of device time, nothing lost in the recording
  double absent = 0;
  double unknown_lossy = 0;
  double absent_lossy = 0;
  std::vector<double> share_error;
  std::vector<double> worst_share_error;
  std::vector<double> step_error;
  std::vector<double> coverage;
  uint64_t faults = 0;
  uint64_t recordings = 0;
};

Totals total(const std::vector<Score>& scores) {
  Totals t;
  for (const Score& s : scores) {
    ++t.recordings;
    if (!s.fault.empty()) {
      ++t.faults;
      continue;
    }
    if (s.group == "removed") {
      t.abstained.add(s.abstained);
      continue;
    }
    for (size_t tool = 0; tool < kTools; ++tool) {
      for (size_t a = 0; a < kClasses; ++a) {
        for (size_t b = 0; b < kClasses; ++b)
          t.confusion[tool][a][b] += s.tools[tool].confusion[a][b];
      }
      t.top1[tool].add(s.tools[tool].top1);
      if (s.group == "trap") t.false_alarm[tool].add(s.tools[tool].false_alarm);
    }
    t.by_cause[s.cause].add(s.tools[0].top1);
    t.by_group[s.group].add(s.tools[0].top1);
    t.by_profile[s.profile].add(s.tools[0].top1);
    t.wrong_abstention.add(s.cannot_tell);
    if (!s.scored) continue;
    bool complete = s.profile != "lossy";  // records are lost in that profile
    if (complete) t.unknown_small.add(s.unknown_of_absent <= 0.05);
    (complete ? t.unknown : t.unknown_lossy) += s.unknown_of_absent * s.absent;
    (complete ? t.absent : t.absent_lossy) += s.absent;
    t.share_error.push_back(s.share_error);
    t.worst_share_error.push_back(s.worst_share_error);
    t.coverage.push_back(s.coverage);
    if (s.has_limiter) t.limiter.add(s.limiter_right);
    bool right = s.has_steps && s.predicted_steps - s.right_steps <= 1 + s.predicted_steps / 100;
    t.steps_right.add(right);
    if (s.has_steps) {
      t.boundaries.all += s.predicted_steps;
      t.boundaries.good += s.right_steps;
      t.step_error.push_back(s.step_error);
    }
  }
  return t;
}

std::string json_of(const Ratio& r) {
  return fmt::format(R"({{"value": {:.4f}, "good": {}, "all": {}}})", r.value(), r.good, r.all);
}

std::string json_of(const std::map<std::string, Ratio>& ratios) {
  std::string out;
  for (const auto& [name, ratio] : ratios) {
    out += fmt::format("{}\n    \"{}\": {}", out.empty() ? "" : ",", name, json_of(ratio));
  }
  return "{" + out + "\n  }";
}

std::string json_of(const std::vector<double>& values) {
  return fmt::format(R"({{"median": {:.5f}, "p90": {:.5f}, "max": {:.5f}, "n": {}}})",
                     quantile(values, 0.5), quantile(values, 0.9), quantile(values, 1),
                     values.size());
}

std::string json_of(const Confusion& confusion) {
  std::string out;
  for (size_t a = 0; a < kClasses; ++a) {
    std::string row;
    for (size_t b = 0; b < kClasses; ++b)
      row += fmt::format("{}{:.5f}", b == 0 ? "" : ", ", confusion[a][b]);
    out += fmt::format("{}\n      \"{}\": [{}]", a == 0 ? "" : ",",
                       class_name(static_cast<Class>(a)), row);
  }
  return "{" + out + "\n    }";
}

}  // namespace

std::vector<ClassScore> class_scores(const Confusion& confusion) {
  std::vector<ClassScore> out(kCausal);
  for (size_t c = 0; c < kCausal; ++c) {
    double truth = 0;
    double predicted = 0;
    for (size_t o = 0; o < kClasses; ++o) {
      truth += confusion[c][o];
      predicted += confusion[o][c];
    }
    double both = confusion[c][c];
    out[c].weight = truth;
    out[c].recall = truth > 0 ? both / truth : 0;
    out[c].precision = predicted > 0 ? both / predicted : 0;
    double sum = out[c].recall + out[c].precision;
    out[c].f1 = sum > 0 ? 2 * out[c].recall * out[c].precision / sum : 0;
  }
  return out;
}

double macro_f1(const Confusion& confusion) {
  double sum = 0;
  int present = 0;
  for (const ClassScore& c : class_scores(confusion)) {
    if (c.weight < kPresent) continue;
    sum += c.f1;
    ++present;
  }
  return present == 0 ? 0 : sum / present;
}

std::string to_json(const std::string& set, const std::vector<Score>& scores) {
  Totals t = total(scores);
  std::string tools;
  for (size_t tool = 0; tool < kTools; ++tool) {
    std::string classes;
    std::vector<ClassScore> by_class = class_scores(t.confusion[tool]);
    for (size_t c = 0; c < kCausal; ++c) {
      classes += fmt::format(
          R"({}"{}": {{"precision": {:.4f}, "recall": {:.4f}, "f1": {:.4f}, "true_share": {:.4f}}})",
          c == 0 ? "" : ", ", class_name(static_cast<Class>(c)), by_class[c].precision,
          by_class[c].recall, by_class[c].f1, by_class[c].weight);
    }
    tools += fmt::format(
        "{}\n    \"{}\": {{\"macro_f1\": {:.4f}, \"top1\": {}, \"false_alarms\": {},\n    "
        "\"classes\": {{{}}},\n    \"confusion\": {}}}",
        tool == 0 ? "" : ",", tool_name(static_cast<Tool>(tool)), macro_f1(t.confusion[tool]),
        json_of(t.top1[tool]), json_of(t.false_alarm[tool]), classes, json_of(t.confusion[tool]));
  }
  std::string out =
      fmt::format("{{\n  \"set\": \"{}\",\n  \"recordings\": {},\n  \"faults\": {},\n", set,
                  t.recordings, t.faults);
  out += "  \"tools\": {" + tools + "\n  },\n";
  out += "  \"limiter\": " + json_of(t.limiter) + ",\n";
  out += "  \"steps_with_one_boundary\": " + json_of(t.boundaries) + ",\n";
  out += "  \"steps_right\": " + json_of(t.steps_right) + ",\n";
  out += "  \"step_error\": " + json_of(t.step_error) + ",\n";
  out += "  \"share_error\": " + json_of(t.share_error) + ",\n";
  out += "  \"worst_share_error\": " + json_of(t.worst_share_error) + ",\n";
  out += "  \"coverage\": " + json_of(t.coverage) + ",\n";
  out += "  \"right_to_abstain\": " + json_of(t.abstained) + ",\n";
  out += "  \"wrong_to_abstain\": " + json_of(t.wrong_abstention) + ",\n";
  out += "  \"unknown_at_most_5_percent\": " + json_of(t.unknown_small) + ",\n";
  out += fmt::format("  \"unknown_of_absent\": {:.5f},\n  \"unknown_of_absent_lossy\": {:.5f},\n",
                     t.unknown / std::max(t.absent, 1e-12),
                     t.unknown_lossy / std::max(t.absent_lossy, 1e-12));
  out += "  \"top1_by_cause\": " + json_of(t.by_cause) + ",\n";
  out += "  \"top1_by_group\": " + json_of(t.by_group) + ",\n";
  out += "  \"top1_by_profile\": " + json_of(t.by_profile) + "\n}\n";
  return out;
}

std::string to_table(const std::vector<Score>& scores) {
  Totals t = total(scores);
  std::string out = fmt::format("recordings {}, not readable {}\n", t.recordings, t.faults);
  for (size_t tool = 0; tool < kTools; ++tool) {
    out += fmt::format("{:<18} macro-F1 {:.3f}  top-1 {}  false alarms {}\n",
                       tool_name(static_cast<Tool>(tool)), macro_f1(t.confusion[tool]),
                       t.top1[tool].text(), t.false_alarm[tool].text());
  }
  out += fmt::format("limiter {}  steps {}  recordings with all steps right {}\n", t.limiter.text(),
                     t.boundaries.text(), t.steps_right.text());
  out += fmt::format(
      "share error of the top verdict: median {:.2f} p90 {:.2f} points; of any: median {:.2f} p90 "
      "{:.2f}\n",
      100 * quantile(t.share_error, 0.5), 100 * quantile(t.share_error, 0.9),
      100 * quantile(t.worst_share_error, 0.5), 100 * quantile(t.worst_share_error, 0.9));
  out += fmt::format(
      "step error: median {:.4f} p90 {:.4f}; analysed share of windows: median {:.2f}\n",
      quantile(t.step_error, 0.5), quantile(t.step_error, 0.9), quantile(t.coverage, 0.5));
  out += fmt::format("UNKNOWN {:.2f} % of compute-absent time, {:.2f} % where records were lost\n",
                     100 * t.unknown / std::max(t.absent, 1e-12),
                     100 * t.unknown_lossy / std::max(t.absent_lossy, 1e-12));
  out += fmt::format("right to abstain {}  wrong to abstain {}  unknown <= 5 % {}\n",
                     t.abstained.text(), t.wrong_abstention.text(), t.unknown_small.text());
  std::vector<ClassScore> by_class = class_scores(t.confusion[0]);
  out += "class          precision recall    F1  true time, then where it went\n";
  for (size_t c = 0; c < kCausal; ++c) {
    out +=
        fmt::format("{:<14} {:9.3f} {:6.3f} {:5.3f} {:8.3f}  ", class_name(static_cast<Class>(c)),
                    by_class[c].precision, by_class[c].recall, by_class[c].f1, by_class[c].weight);
    for (size_t o = 0; o < kClasses; ++o) {
      double part = by_class[c].weight > 0 ? t.confusion[0][c][o] / by_class[c].weight : 0;
      if (o != c && part > 0.01)
        out += fmt::format(" {} {:.1f}%", class_name(static_cast<Class>(o)), 100 * part);
    }
    out += "\n";
  }
  for (const auto& [name, ratio] : t.by_cause) {
    if (ratio.good < ratio.all) out += fmt::format("top-1 {:<40} {}\n", name, ratio.text());
  }
  return out;
}

std::string failures(const std::vector<Score>& scores) {
  std::string out;
  for (const Score& s : scores) {
    std::string why;
    if (!s.fault.empty()) why += " fault: " + s.fault;
    if (s.group == "removed") {
      if (!s.abstained) why += fmt::format(" did not abstain (claimed {:.2f})", s.claimed);
    } else {
      if (!s.tools[0].top1) why += " verdict " + s.tools[0].verdict + " true " + s.true_verdict;
      if (s.tools[0].false_alarm) why += " FALSE ALARM";
      if (s.has_limiter && !s.limiter_right)
        why += " limiter " + s.limiter + " true " + s.true_limiter;
      if (s.scored && s.worst_share_error > 0.03)
        why += fmt::format(" share off by {:.1f} points", 100 * s.worst_share_error);
      for (size_t a = 0; s.scored && a < kClasses; ++a) {
        for (size_t b = 0; b < kClasses; ++b) {
          double part = s.tools[0].confusion[a][b];
          if (a != b && part > 0.02) {
            why += fmt::format(" {}>{} {:.1f}", class_name(static_cast<Class>(a)),
                               class_name(static_cast<Class>(b)), 100 * part);
          }
        }
      }
      if (s.scored && s.unknown_of_absent > 0.05)
        why += fmt::format(" unknown {:.2f} of absent", s.unknown_of_absent);
      if (s.scored && s.has_steps &&
          s.predicted_steps - s.right_steps > 1 + s.predicted_steps / 100) {
        why += fmt::format(" steps: {} of {} hold one true boundary ({} true)", s.right_steps,
                           s.predicted_steps, s.true_steps);
      }
      if (s.scored && !s.has_steps) why += " no steps";
      if (!s.scored && s.fault.empty()) why += " no analysed time";
    }
    if (!why.empty()) out += s.name + ":" + why + "\n";
  }
  return out;
}

}  // namespace idlescope::accuracy
