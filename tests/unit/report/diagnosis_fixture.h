// Diagnoses made by hand, and what a report of them says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/report/build.h"
#include "analysis/report/text.h"

namespace idlescope::report {

using diagnose::Diagnosis;

inline constexpr double kMs = 1e6;

struct Part {
  Leaf leaf;
  double ms;
};

// 100 steady steps made of these parts, on one device.
inline Diagnosis loop(Verdict verdict, std::vector<Part> parts) {
  Diagnosis d;
  d.verdict = verdict;
  d.certainty = SURE;
  d.ledger = LEDGER_WINDOW;
  diagnose::DeviceDiagnosis device;
  device.name = "NVIDIA H200";
  device.verdict = verdict;
  double step_ms = 0;
  for (const Part& part : parts) {
    diagnose::LeafTime leaf;
    leaf.leaf = part.leaf;
    leaf.total_ns = static_cast<int64_t>(100 * part.ms * kMs);
    leaf.per_step_ns = part.ms * kMs;
    leaf.grade_ns[0] = leaf.total_ns;
    device.leaves.push_back(leaf);
    step_ms += part.ms;
  }
  for (diagnose::LeafTime& leaf : device.leaves) leaf.share = leaf.per_step_ns / kMs / step_ms;
  std::sort(device.leaves.begin(), device.leaves.end(),
            [](const auto& a, const auto& b) { return a.leaf < b.leaf; });
  device.window_ns = static_cast<int64_t>(100 * step_ms * kMs);
  device.compute_ns = static_cast<int64_t>(100 * parts[0].ms * kMs);
  d.devices.push_back(device);
  d.chosen_device = 0;
  d.processes.emplace_back();
  d.processes.back().python_version = "3.12.3";
  d.chosen_process = 0;
  d.verdict_shares.push_back({verdict, 0.5, {}, 0});
  d.step.window_only = false;
  d.step.steady_steps = 100;
  d.step.run_steps = 1000;
  d.step.mean_ns = step_ms * kMs;
  d.step.kernels_per_step = 200;
  d.evidence.ops = 20000;
  return d;
}

inline void add_loader(Diagnosis* d, int workers, double fetch_ms, Limiter limiter,
                       double cores = 16) {
  diagnose::LoaderSummary& loader = d->loader;
  loader.seen = true;
  loader.num_workers = workers;
  loader.prefetch_factor = 2;
  loader.batch_size = 64;
  loader.samples_mean = 64;
  loader.site = "train.py:41";
  loader.inner_site = "train.py:41";
  loader.fetch_mean_ns = fetch_ms * kMs;
  loader.fetch_counters = true;
  loader.fetch_cpu_share = 0.98;
  loader.cores = cores;
  loader.cores_busy = workers + 1;
  loader.loaders = 1;
  d->limiter = limiter;
}

inline Report report_of(const Diagnosis& d) { return build(d, read::Recording()); }

inline std::vector<std::string> ids(const Report& report) {
  std::vector<std::string> out;
  for (const Fix& fix : report.fixes()) out.push_back(fix.id());
  return out;
}

inline bool has(const Report& report, const std::string& id) {
  const std::vector<std::string> all = ids(report);
  return std::find(all.begin(), all.end(), id) != all.end();
}

inline std::string text_of(const Report& report) { return render_text(report, TextOptions()); }

// All sentences of the report in one line, as if the terminal were endless.
inline std::string said(const Report& report) {
  std::string out;
  for (const Text& sentence : report.sentences()) out += sentence.text() + " ";
  for (const Text& limit : report.limits()) out += limit.text() + " ";
  return out;
}

// No sentence may show a value that nobody filled in.
inline void expect_complete(const Report& report) {
  const std::string text = text_of(report);
  EXPECT_EQ(text.find('{'), std::string::npos) << text;
}

}  // namespace idlescope::report
