#include "analysis/report/limits.h"
#include "analysis/report/kernel_name.h"
#include "proto/messages.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace idlescope::report {
namespace {

// "KIND_CALL_LAUNCH" -> "call launch".
std::string kind_words(const std::string& value) {
  if (value.compare(0, 5, "KIND_") != 0) return value;
  std::string out = value.substr(5);
  for (char& c : out) c = c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

Text statement_text(const messages::Message& message, const messages::Values& values) {
  Say say(message);
  for (const auto& [name, value] : values) {
    say.with(name, name == "kind" ? kind_words(value) : value);
  }
  return say;
}

const char* role_name(int role) {
  switch (role) {
    case trace::Process::ROLE_MAIN:
      return "main";
    case trace::Process::ROLE_LOADER_WORKER:
      return "loader worker";
    case trace::Process::ROLE_HELPER:
      return "helper";
    default:
      return "unknown";
  }
}

// The sentence for one host-side number; nothing when the GPU did pay for it.
bool not_it_text(const Context& c, const diagnose::NotIt& item, Text* text) {
  using What = diagnose::NotIt::What;
  const double hidden_ns = item.host_ns_per_step - item.cost_ns_per_step;
  if (hidden_ns < 0.5 * item.host_ns_per_step) return false;
  const std::string host = c.time(item.host_ns_per_step);
  const bool some = std::llround(item.cost_ns_per_step) > 0;
  const auto fill = [&](const messages::Message& message) {
    return Say(message)
        .with("call", plain_call_name(item.name))
        .with("host", host)
        .with("cost", c.time(item.cost_ns_per_step))
        .nested("effect", some ? messages::kEffectSome : messages::kEffectNone);
  };
  switch (item.what) {
    case What::kSync:
      *text = fill(c.per_step ? messages::kNotItSyncCost : messages::kNotItTotalSync);
      return true;
    case What::kLaunch:
      if (!c.per_step) {
        *text = fill(messages::kNotItTotalLaunch);
      } else if (item.back_pressure) {
        *text = Say(messages::kNotItLaunchFull).with("host", host);
      } else {
        *text = fill(messages::kNotItLaunchCost);
      }
      return true;
    case What::kCopyCall:
      if (!c.per_step) return false;
      *text = fill(messages::kNotItCopy);
      return true;
    case What::kNext:
      if (!c.per_step) return false;
      *text =
          Say(messages::kNotItLoaderHidden).with("host", host).with("hidden", c.time(hidden_ns));
      return true;
  }
  return false;
}

// What is large enough to look like a problem, largest first. Launches have several call names
// (cudaLaunchKernel, cudaLaunchKernelExC) and are one suspect.
std::vector<diagnose::NotIt> suspects(const Context& c) {
  using What = diagnose::NotIt::What;
  std::vector<diagnose::NotIt> out;
  for (const diagnose::NotIt& item : c.d.not_it) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const diagnose::NotIt& other) {
      return other.what == item.what && (item.what == What::kLaunch ||
                                         plain_call_name(other.name) == plain_call_name(item.name));
    });
    if (same == out.end()) {
      out.push_back(item);
      continue;
    }
    same->host_ns_per_step += item.host_ns_per_step;
    same->cost_ns_per_step += item.cost_ns_per_step;
    same->back_pressure = same->back_pressure || item.back_pressure;
  }
  out.erase(std::remove_if(out.begin(), out.end(),
                           [&](const auto& item) { return c.share(item.host_ns_per_step) < 0.05; }),
            out.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.host_ns_per_step > b.host_ns_per_step;
  });
  return out;
}

// More than this is not recording alone: a checkpoint or an evaluation fell into the window.
constexpr double kMostSlowdown = 1.5;

}  // namespace

void write_not_it(const Context& c, Report* report) {
  if (!c.device || c.d.verdict == CANNOT_TELL) return;
  bool loader_named = false;
  for (const diagnose::NotIt& item : suspects(c)) {
    if (report->not_it_size() == 2) break;
    Text text;
    if (!not_it_text(c, item, &text)) continue;
    NotIt* out = report->add_not_it();
    *out->mutable_text() = std::move(text);
    out->set_host_ns_per_step(std::llround(item.host_ns_per_step));
    out->set_cost_ns_per_step(std::llround(item.cost_ns_per_step));
    loader_named |= item.what == diagnose::NotIt::What::kNext;
  }
  if (!loader_named && c.d.loader.seen && !c.worthwhile(c.verdict_ns(DATA)) &&
      report->not_it_size() < 2 && c.d.verdict != DATA && c.d.verdict != STARTUP) {
    NotIt* out = report->add_not_it();
    *out->mutable_text() = Say(messages::kNotItLoader);
    out->set_host_ns_per_step(std::llround(c.d.loader.wait_mean_ns));
    out->set_cost_ns_per_step(std::llround(c.verdict_ns(DATA)));
  }
}

void write_limits(const Context& c, Report* report) {
  std::set<std::string> said;
  const auto add = [&](Text text) {
    if (said.insert(text.id()).second) *report->add_limits() = std::move(text);
  };
  const diagnose::EvidenceSummary& evidence = c.d.evidence;
  const std::string unknown = percent(evidence.unknown_of_window);
  if (c.device && c.per_step) {
    Say say(messages::kLimitSteady);
    say.counted("steps", "steady", c.d.step.steady_steps, messages::kOneSteadyStep,
                messages::kManySteadySteps)
        .with("unknown", unknown);
    const bool slower = c.d.step.slowdown > 1.005;
    const bool differ = c.d.step.slowdown > kMostSlowdown;
    if (slower && !differ) {
      say.with("percent", percent(c.d.step.slowdown - 1))
          .nested("slowdown", messages::kLimitSlowdown);
    } else {
      say.with("slowdown", "");
    }
    add(say);
    if (differ) {
      add(Say(messages::kLimitWindowsDiffer).with("factor", speedup(c.d.step.slowdown)));
    }
  } else if (c.device) {
    add(Say(messages::kLimitWindow)
            .with("window", duration(c.device->window_ns))
            .with("unknown", unknown));
  } else {
    const uint64_t steps = c.d.step.run_steps;
    add(Say(messages::kLimitHostOnly)
            .with("steps", count(steps))
            .nested("counted", steps == 0   ? messages::kNoSteps
                               : steps == 1 ? messages::kOneStep
                                            : messages::kManySteps));
  }
  if (c.d.chosen_process < c.recording.processes.size()) {
    for (const trace::Status& status : c.recording.processes[c.d.chosen_process].statuses) {
      if (status.state() == trace::Status::STATE_HOST_ONLY && !c.device) {
        add(Say(messages::kLimitNoDevice)
                .with("detail", status.detail().empty() ? status.message_id() : status.detail()));
      }
      for (const messages::Message& stays :
           {messages::kLimitStaysGraphs, messages::kLimitStaysThreads, messages::kLimitStaysBusy}) {
        if (status.message_id() == stays.id) add(Say(stays));
      }
    }
  }
  for (const diagnose::Statement& limit : c.d.limits)
    add(statement_text(limit.message, limit.values));
  if (evidence.dropped > 0) {
    add(Say(messages::kLimitDropped)
            .with("count", count(evidence.dropped))
            .with("share", percent(evidence.dropped_share)));
  }
  if (c.device && evidence.ops > 0 && evidence.join_rate < 0.995) {
    add(Say(messages::kLimitJoin).with("share", percent(evidence.join_rate)));
  }
  if (evidence.truncated || c.recording.truncated) add(Say(messages::kLimitTruncated));
  if (c.d.chosen_process < c.recording.processes.size() &&
      c.recording.processes[c.d.chosen_process].unfinished) {
    add(Say(messages::kLimitUnfinished));
  }
  if (c.device && c.device->opaque_share > 0.05) {
    add(Say(messages::kLimitGraphsWhole).with("share", percent(c.device->opaque_share)));
  } else if (c.device && c.device->ops_in_graphs > 0.05) {
    add(Say(messages::kLimitGraphs).with("share", percent(c.device->ops_in_graphs)));
  }
  // Worth a line where that much of the computing is something of the step.
  if (c.device && c.device->kernel_drift >= 0.05 &&
      c.worthwhile(c.device->kernel_drift * c.compute_ns())) {
    add(Say(messages::kLimitKernelDrift).with("percent", percent(c.device->kernel_drift)));
  }
  if (evidence.other_processes > 0 || (c.device && c.device->shared_with_other_process)) {
    add(Say(messages::kLimitShared));
  }
  if (c.d.chosen_process < c.d.processes.size()) {
    const diagnose::ProcessSummary& chosen = c.d.processes[c.d.chosen_process];
    if (chosen.has_rank && chosen.world_size > 1 && c.d.ranks.size() < 2) {
      add(Say(messages::kLimitOneRank)
              .with("rank", std::to_string(chosen.rank))
              .with("ranks", std::to_string(chosen.world_size)));
    }
    size_t with_gpu = 0;
    for (const diagnose::ProcessSummary& process : c.d.processes) with_gpu += process.gpu_ops > 0;
    if (with_gpu > 1 && c.d.ranks.size() < 2) {
      add(Say(messages::kLimitProcesses)
              .with("count", count(with_gpu))
              .with("pid", std::to_string(chosen.pid))
              .with("executable", chosen.executable));
    }
  }

  for (const diagnose::Abstention& abstention : c.d.abstentions) {
    Abstention* out = report->add_abstentions();
    *out->mutable_text() =
        statement_text(abstention.statement.message, abstention.statement.values);
    out->set_leaf(abstention.leaf);
    out->set_missing_kind(abstention.missing_kind);
  }
  for (const read::Anomaly& anomaly : c.recording.anomalies) {
    Anomaly* out = report->add_anomalies();
    out->set_id(std::string(anomaly.message.id));
    out->set_count(anomaly.count);
    *out->mutable_text() = statement_text(anomaly.message, anomaly.values);
    out->set_severity(anomaly.affects_conclusions ? Anomaly::SEVERITY_ERROR
                                                  : Anomaly::SEVERITY_WARNING);
    if (anomaly.affects_conclusions) add(out->text());
  }
  for (size_t i = 0; i < c.d.processes.size(); ++i) {
    const diagnose::ProcessSummary& process = c.d.processes[i];
    ProcessInfo* out = report->mutable_source()->add_processes();
    out->set_host(process.host);
    out->set_pid(process.pid);
    out->set_executable(process.executable);
    out->set_role(role_name(process.role));
    out->set_has_rank(process.has_rank);
    out->set_rank(process.rank);
    out->set_gpu_ops(process.gpu_ops);
    out->set_host_events(process.host_events);
    out->set_torch_version(process.torch_version);
    out->set_python_version(process.python_version);
    if (i == c.d.chosen_process) *report->mutable_source()->mutable_chosen() = *out;
  }
}

}  // namespace idlescope::report
