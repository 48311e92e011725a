#include "analysis/report/build.h"

#include <algorithm>
#include <cmath>

#include "analysis/report/advice.h"
#include "analysis/report/context.h"
#include "analysis/report/launch_phase.h"
#include "analysis/report/limits.h"
#include "analysis/report/loader_lanes.h"
#include "analysis/report/numbers_of_report.h"
#include "analysis/report/sentences.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

Source::Format format_of(read::Origin origin) {
  switch (origin) {
    case read::Origin::kIdlescope:
      return Source::FORMAT_IDLESCOPE;
    case read::Origin::kKineto:
      return Source::FORMAT_KINETO_JSON;
    case read::Origin::kNsys:
      return Source::FORMAT_NSYS_SQLITE;
  }
  return Source::FORMAT_UNKNOWN;
}

}  // namespace

Report build(const diagnose::Diagnosis& diagnosis, const read::Recording& recording) {
  const Context context(diagnosis, recording);
  Report report;
  report.set_tool("idlescope " IDLESCOPE_VERSION);
  report.set_schema(1);
  Source* source = report.mutable_source();
  for (const std::string& path : recording.paths) source->add_path(path);
  source->set_format(format_of(recording.origin));
  source->set_command(diagnosis.command);
  source->set_duration_ns(diagnosis.end_ns - diagnosis.begin_ns);

  report.set_verdict(diagnosis.verdict);
  report.set_certainty(diagnosis.certainty);
  report.set_verdict_ledger(diagnosis.ledger);
  report.set_top_leaf(diagnosis.top_leaf);
  report.set_limiter(diagnosis.limiter);
  for (const diagnose::VerdictShare& share : diagnosis.verdict_shares) {
    VerdictShare* out = report.add_verdict_shares();
    out->set_verdict(share.verdict);
    out->set_share(share.share);
    if (share.ci.level > 0) {
      out->mutable_ci()->set_low(share.ci.low);
      out->mutable_ci()->set_high(share.ci.high);
      out->mutable_ci()->set_level(share.ci.level);
    }
    out->set_per_step_ns(std::llround(share.per_step_ns));
  }
  if (diagnosis.chosen_process < recording.processes.size()) {
    report.set_launch_optimizer_share(
        launch_optimizer_share(recording.processes[diagnosis.chosen_process]));
  }
  copy_numbers(context, &report);
  add_loader_lanes(context, &report);
  write_sentences(context, &report);
  write_fixes(context, &report);
  write_not_it(context, &report);
  write_limits(context, &report);
  if (!report.fixes().empty() && recording.origin == read::Origin::kIdlescope) {
    const std::string old = recording.paths.empty() ? "OLD" : recording.paths[0];
    report.set_check_command("idlescope compare " + old + " NEW");
    *report.mutable_check() = Say(messages::kCheckCompare).with("old", old);
  }
  return report;
}

}  // namespace idlescope::report
