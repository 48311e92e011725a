// Diagnosis to report.proto, number by number: nothing is ranked, rounded or worded here.
#include <algorithm>
#include <cmath>

#include "analysis/report/kernel_name.h"
#include "analysis/report/numbers_of_report.h"
#include "analysis/report/sentences.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

int64_t whole(double ns) { return std::llround(ns); }

void set_interval(const diagnose::Interval& from, Interval* to) {
  to->set_low(from.low);
  to->set_high(from.high);
  to->set_level(from.level);
}

void add_leaves(const std::vector<diagnose::LeafTime>& from,
                google::protobuf::RepeatedPtrField<LeafTime>* to) {
  for (const diagnose::LeafTime& leaf : from) {
    LeafTime* out = to->Add();
    out->set_leaf(leaf.leaf);
    out->set_total_ns(leaf.total_ns);
    out->set_per_step_ns(whole(leaf.per_step_ns));
    out->set_share(leaf.share);
    if (leaf.ci.level > 0) set_interval(leaf.ci, out->mutable_ci());
    out->set_grade_a_ns(leaf.grade_ns[0]);
    out->set_grade_b_ns(leaf.grade_ns[1]);
    out->set_grade_c_ns(leaf.grade_ns[2]);
    out->set_pieces(leaf.pieces);
  }
}

void copy_step(const Context& c, Report* report) {
  const diagnose::StepSummary& from = c.d.step;
  StepSummary* out = report->mutable_step();
  out->set_steady_steps(from.steady_steps);
  out->set_run_steps(from.run_steps);
  out->set_mean_ns(whole(from.mean_ns));
  out->set_median_ns(from.median_ns);
  if (from.mean_ci.level > 0) set_interval(from.mean_ci, out->mutable_mean_ci());
  out->set_unprofiled_mean_ns(whole(from.unprofiled_mean_ns));
  out->set_confidence(from.confidence);
  out->set_anchor(from.anchor);
  out->set_kernels_per_step(static_cast<uint64_t>(std::llround(from.kernels_per_step)));
  out->set_micro_steps(from.micro_steps);
  out->set_window_only(from.window_only);
  out->set_slowdown(from.slowdown);
  out->set_busy_share(c.share(c.compute_ns()));
  if (from.unprofiled_mean_ns > 0 && c.per_step) {
    out->set_busy_share_unprofiled(std::min(1.0, c.compute_ns() / from.unprofiled_mean_ns));
  }
  out->set_nvml_utilization(std::max(0.0, c.d.evidence.nvml_utilization));
}

void copy_devices(const Context& c, Report* report) {
  for (const diagnose::DeviceDiagnosis& device : c.d.devices) {
    DeviceSummary* out = report->add_devices();
    out->set_name(device.name);
    out->set_uuid(device.uuid);
    out->set_device_id(device.device_id);
    if (device.process < c.d.processes.size()) out->set_pid(c.d.processes[device.process].pid);
    out->set_window_ns(device.window_ns);
    out->set_compute_ns(device.compute_ns);
    out->set_hidden_copy_ns(device.hidden_copy_ns);
    out->set_hidden_comm_ns(device.hidden_comm_ns);
    out->set_fill(std::max(0.0, device.fill));
    out->set_rated_share(device.rated_share);
    out->set_tiny_ns(device.tiny_ns);
    out->set_underfilled_ns(device.underfilled_ns);
    out->set_tail_ns(device.tail_ns);
    out->set_fp32_matrix_ns(device.fp32_matrix_ns);
    out->set_kernels(device.kernels);
    add_leaves(device.leaves, out->mutable_leaves());
    out->set_verdict(device.verdict);
  }
  if (c.device) add_leaves(c.device->leaves, report->mutable_leaves());
}

void copy_run(const Context& c, Report* report) {
  const diagnose::RunLedger& from = c.d.run;
  RunSummary* out = report->mutable_run();
  out->set_wall_ns(from.end_ns - from.begin_ns);
  out->set_startup_ns(from.startup_ns);
  out->set_epochs(from.epochs);
  out->set_epoch_restart_ns(from.epoch_restart_ns);
  out->set_mean_step_ns(whole(from.mean_step_ns));
  out->set_median_step_ns(from.median_step_ns);
  out->set_loader_wait_ns(from.loader_wait_ns);
  out->set_samples_per_step(from.samples_per_step);
  for (const diagnose::RunStall& stall : from.stalls) {
    RunStall* to = report->add_stalls();
    to->set_verdict(stall.verdict);
    to->set_leaf(stall.leaf);
    to->set_count(stall.count);
    to->set_period_steps(stall.period_steps);
    to->set_total_ns(stall.total_ns);
    to->set_mean_ns(stall.mean_ns);
    to->set_share_of_run(stall.share_of_run);
    to->set_per_epoch(stall.per_epoch);
    *to->mutable_text() = stall_words(stall);
  }
  for (const diagnose::Phase& phase : c.d.phases) {
    Phase* to = report->add_phases();
    to->set_name(phase.name);
    to->set_steps(phase.steps);
    to->set_total_ns(phase.total_ns);
    to->set_mean_step_ns(phase.mean_step_ns);
    to->set_window_ns(phase.window_ns);
    to->set_busy_share(phase.busy_share);
    add_leaves(phase.leaves, to->mutable_leaves());
    for (const diagnose::VerdictShare& share : phase.verdict_shares) {
      VerdictShare* part = to->add_verdict_shares();
      part->set_verdict(share.verdict);
      part->set_share(share.share);
    }
  }
  for (const diagnose::RankDiagnosis& rank : c.d.ranks) {
    RankSummary* to = report->add_ranks();
    to->set_rank(rank.rank);
    if (rank.process < c.d.processes.size()) {
      to->set_host(c.d.processes[rank.process].host);
      to->set_pid(c.d.processes[rank.process].pid);
    }
    to->set_verdict(rank.verdict);
    to->set_busy_share(rank.busy_share);
    to->set_mean_step_ns(whole(rank.mean_step_ns));
    to->set_comm_wait_ns(whole(rank.comm_wait_ns));
    to->set_comm_transfer_ns(whole(rank.comm_transfer_ns));
    to->set_last_share(rank.last_share);
  }
}

void copy_loader(const Context& c, Report* report) {
  const diagnose::LoaderSummary& from = c.d.loader;
  LoaderSummary* out = report->mutable_loader();
  out->set_seen(from.seen);
  out->set_num_workers(from.num_workers);
  out->set_prefetch_factor(from.prefetch_factor);
  out->set_pin_memory(from.pin_memory);
  out->set_persistent_workers(from.persistent_workers);
  out->set_iterable(from.iterable);
  out->set_start_method(from.start_method);
  out->set_site(from.site);
  out->set_batches(from.batches);
  out->set_fetch_mean_ns(whole(from.fetch_mean_ns));
  out->set_fetch_cpu_share(from.fetch_cpu_share);
  out->set_fetch_run_queue_share(from.fetch_run_queue_share);
  out->set_fetch_blocked_share(from.fetch_blocked_share);
  out->set_fetch_bytes_mean(whole(from.fetch_bytes_mean));
  out->set_worker_busy_share(std::max(0.0, from.worker_busy_share));
  out->set_mean_ready(std::max(0.0, from.mean_ready));
  out->set_next_mean_ns(whole(from.next_mean_ns));
  out->set_collate_mean_ns(whole(from.collate_mean_ns));
  out->set_pickle_mean_ns(whole(from.pickle_mean_ns));
  out->set_pin_mean_ns(whole(from.pin_mean_ns));
  out->set_cores_busy(from.cores_busy);
  out->set_cores(from.cores);
  for (const diagnose::HotFrame& frame : from.frames) {
    HotFrame* to = out->add_frames();
    to->set_site(frame.site);
    to->set_share(frame.share);
  }
  out->set_loaders(from.loaders);
  for (const std::string& name : from.unseen) out->add_unseen(name);
  out->set_empty_workers(from.empty_workers);
}

void copy_tables(const Context& c, Report* report) {
  for (const diagnose::KernelSummary& kernel : c.d.kernels) {
    KernelSummary* to = report->add_kernels();
    to->set_name(plain_kernel_name(kernel.name));
    to->set_count(kernel.count);
    to->set_total_ns(kernel.total_ns);
    to->set_fill(std::max(0.0, kernel.fill));
    const double total = static_cast<double>(kernel.total_ns);
    const char* label = "";
    if (static_cast<double>(kernel.tiny_ns) > 0.5 * total) {
      label = "tiny";
    } else if (static_cast<double>(kernel.underfilled_ns) > 0.25 * total) {
      label = "underfilled";
    } else if (static_cast<double>(kernel.tail_ns) > 0.25 * total) {
      label = "tail";
    } else if (kernel.fp32_matrix) {
      label = "fp32-gemm";
    } else if (kernel.fill < 0) {
      label = "unrated";
    }
    to->set_label(label);
    to->set_kind(kernel.comm ? "comm" : "compute");
  }
  for (const diagnose::CopySummary& copy : c.d.copies) {
    CopySummary* to = report->add_copies();
    to->set_path(copy.path);
    to->set_count(copy.count);
    to->set_bytes(copy.bytes);
    to->set_total_ns(copy.total_ns);
    to->set_exposed_ns(copy.exposed_ns);
    if (copy.total_ns > 0) {
      to->set_gb_per_s(static_cast<double>(copy.bytes) / static_cast<double>(copy.total_ns));
    }
  }
  for (const diagnose::CollectiveSummary& collective : c.d.collectives) {
    CollectiveSummary* to = report->add_collectives();
    to->set_name(collective.name);
    to->set_ranks(collective.ranks);
    to->set_count(collective.count);
    to->set_bytes(collective.bytes);
    to->set_total_ns(collective.total_ns);
    to->set_transfer_ns(collective.transfer_ns);
    to->set_alg_gb_per_s(collective.alg_gb_per_s);
    to->set_bus_gb_per_s(collective.bus_gb_per_s);
    to->set_one_rank(collective.one_rank);
  }
  for (const diagnose::CallSummary& call : c.d.calls) {
    CallSummary* to = report->add_calls();
    to->set_name(plain_call_name(call.name));
    to->set_count(call.count);
    to->set_host_ns(call.host_ns);
    to->set_cost_ns(call.cost_ns);
  }
}

void copy_drawings(const Context& c, Report* report) {
  for (const diagnose::Gap& gap : c.d.gaps) {
    Gap* to = report->add_gaps();
    to->set_device_index(gap.device);
    to->set_begin_ns(gap.begin_ns);
    to->set_end_ns(gap.end_ns);
    to->set_step(gap.step);
    to->set_top_leaf(gap.top_leaf);
    for (const diagnose::GapPiece& piece : gap.pieces) {
      LeafTime* out = to->add_pieces();
      out->set_leaf(piece.leaf);
      out->set_total_ns(piece.end_ns - piece.begin_ns);
      out->set_pieces(1);
      const int64_t ns = piece.end_ns - piece.begin_ns;
      out->set_grade_a_ns(piece.grade == diagnose::Grade::kA ? ns : 0);
      out->set_grade_b_ns(piece.grade == diagnose::Grade::kB ? ns : 0);
      out->set_grade_c_ns(piece.grade == diagnose::Grade::kC ? ns : 0);
    }
    *to->mutable_text() = gap_words(gap);
    to->set_batch(gap.batch);
    to->set_worker(gap.worker);
    to->set_ended_by(plain_kernel_name(gap.ended_by));
  }
  for (const diagnose::StepPoint& point : c.d.step_points) {
    StepPoint* to = report->add_step_points();
    to->set_begin_ns(point.begin_ns);
    to->set_duration_ns(point.duration_ns);
    to->set_window_id(point.window_id);
    to->set_data_wait_ns(point.data_wait_ns);
    to->set_mark(point.mark);
  }
  for (const diagnose::Timeline& timeline : c.d.timelines) {
    TypicalStep* to = report->add_timelines();
    to->set_which(timeline.which);
    to->set_begin_ns(timeline.begin_ns);
    to->set_end_ns(timeline.end_ns);
    for (const diagnose::Lane& lane : timeline.lanes) {
      Lane* out = to->add_lane();
      out->set_name(lane.name);
      out->set_group(lane.group);
      for (const diagnose::Bar& from : lane.bars) {
        Bar* bar = out->add_bar();
        bar->set_begin_ns(from.begin_ns);
        bar->set_end_ns(from.end_ns);
        bar->set_label(plain_kernel_name(from.label));
        bar->set_leaf(from.leaf);
        bar->set_batch(from.batch);
        bar->set_gap_index(from.gap_index);
        bar->set_value(from.value);
      }
    }
  }
}

void copy_evidence(const Context& c, Report* report) {
  const diagnose::EvidenceSummary& from = c.d.evidence;
  EvidenceSummary* out = report->mutable_evidence();
  out->set_join_rate(from.join_rate);
  out->set_grade_a(from.grade[0]);
  out->set_grade_b(from.grade[1]);
  out->set_grade_c(from.grade[2]);
  out->set_unknown_of_absent(from.unknown_of_absent);
  out->set_unknown_of_step(from.unknown_of_window);
  out->set_dropped(from.dropped);
  out->set_dropped_share(from.dropped_share);
  out->set_clock_shift_ns(from.clock_shift_ns);
  out->set_clock_violations(from.clock_violations);
  for (const std::string& kind : from.recorded_kinds) out->add_recorded_kinds(kind);
  for (const std::string& kind : from.missing_kinds) out->add_missing_kinds(kind);
  out->set_truncated(from.truncated || c.recording.truncated);
  out->set_windows(from.windows);
  RecordingCost* cost = report->mutable_cost();
  cost->set_share_of_run(c.d.cost.share_of_run);
  cost->set_slowdown_in_windows(c.d.step.slowdown);
  cost->set_trace_bytes(c.recording.input_bytes);
  cost->set_attach_ns(c.d.cost.attach_ns);
  cost->set_detach_ns(c.d.cost.detach_ns);
}

}  // namespace

void copy_numbers(const Context& context, Report* report) {
  copy_step(context, report);
  copy_devices(context, report);
  copy_run(context, report);
  copy_loader(context, report);
  copy_tables(context, report);
  copy_drawings(context, report);
  copy_evidence(context, report);
}

}  // namespace idlescope::report
