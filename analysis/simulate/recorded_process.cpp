#include "analysis/simulate/recorded_process.h"

#include <algorithm>

namespace idlescope::simulate {
namespace {

constexpr const char* kHost = "simulated";
constexpr int64_t kFirstPid = 4000;

// CPU time inside an instruction: work, API calls (a waiting synchronisation spins), no waits.
bool burns_cpu(Do what) {
  return what == Do::kRun || what == Do::kLaunch || what == Do::kSync || what == Do::kCall;
}

}  // namespace

int64_t ProcessRecording::pid_of(uint32_t process, const ViewSpec& view) {
  return kFirstPid + static_cast<int64_t>(view.seed % 500) + int64_t{process} * 64;
}

int64_t main_pid(const Program& program, uint16_t rank, const ViewSpec& view) {
  for (uint32_t p = 0; p < program.processes.size(); ++p) {
    if (program.processes[p].rank == rank && !program.processes[p].worker) {
      return ProcessRecording::pid_of(p, view);
    }
  }
  return 0;
}

ProcessRecording::ProcessRecording(const Program& program, const Execution& run,
                                   const ViewSpec& view, uint32_t process)
    : program_(program), run_(run), view_(view), draws_(key(view.seed, 0x71E3)), process_(process) {
  for (uint32_t t = 0; t < program.threads.size(); ++t) {
    if (program.threads[t].process == process) threads_.push_back(t);
  }
  add_header();
}

uint32_t ProcessRecording::thread_id(uint32_t thread) const {
  uint32_t process = program_.threads[thread].process;
  auto pid = static_cast<uint32_t>(pid_of(process, view_));
  uint32_t first = thread;
  while (first > 0 && program_.threads[first - 1].process == process) --first;
  if (thread == first || program_.threads[thread].role == Role::kMain) return pid;
  uint32_t number = thread - first;
  return view_.permute_threads ? pid + 1 + (number * 37 + 11) % 61 : pid + number;
}

void ProcessRecording::add_header() {
  const ProcessSpec& spec = program_.processes[process_];
  trace::Header* header = trace_.add_packet()->mutable_header();
  header->set_format_major(1);
  header->set_tool("idlescope-simulate 0.1.0");
  header->set_boot_id("00000000-0000-4000-8000-000000000001");
  trace::Process* p = header->mutable_process();
  p->set_host(kHost);
  p->set_pid(pid_of(process_, view_));
  p->set_parent_pid(spec.worker ? pid_of(spec.parent, view_) : 1);
  p->set_start_ns(kRecordingBase - 3'000'000'000 + process_);
  p->set_executable("/usr/bin/python3");
  p->add_command_line("python3");
  p->add_command_line("train.py");
  p->set_role(spec.worker ? trace::Process::ROLE_LOADER_WORKER : trace::Process::ROLE_MAIN);
  if (program_.ranks > 1) {
    p->set_has_rank(true);
    p->set_rank(spec.rank);
    p->set_local_rank(spec.rank);
    p->set_world_size(program_.ranks);
  }
  p->set_python_version("3.12.3");
  p->set_torch_version("2.11.0");
  p->set_cpu_count(static_cast<uint32_t>(program_.machine.cores));
  p->set_cpu_online(static_cast<uint32_t>(program_.machine.cores));
  trace::ClockPair* clock = header->mutable_clock();
  clock->set_monotonic_ns(kRecordingBase);
  clock->set_realtime_ns(1'780'000'000'000'000'000);
  clock->set_uncertainty_ns(60);
  header->mutable_options()->set_window("auto");
  header->mutable_options()->set_budget(0.01);
}

uint32_t ProcessRecording::name(const std::string& text) {
  auto [it, added] = names_.try_emplace(text, 0);
  if (added) {
    name_texts_.push_back(text);
    it->second = static_cast<uint32_t>(name_texts_.size());
  }
  return it->second;
}

bool ProcessRecording::kept(trace::Kind kind) const {
  return std::find(view_.removed.begin(), view_.removed.end(), kind) == view_.removed.end();
}

// CPU time of a thread from its start to `time`.
Ns ProcessRecording::cpu_until(uint32_t thread, Ns time) const {
  const ThreadSpec& spec = program_.threads[thread];
  Ns cpu = 0;
  for (const Segment& s : run_.threads[thread]) {
    if (s.begin_ns >= time) break;
    Ns length = std::min(s.end_ns, time) - s.begin_ns;
    if (spec.role == Role::kPin) {
      cpu += length;
      continue;
    }
    const Instruction& in = spec.code[s.instruction];
    if (!burns_cpu(in.what)) continue;
    cpu += in.what == Do::kRun ? scale(length, in.ns, s.end_ns - s.begin_ns) : length;
  }
  return cpu;
}

Ns ProcessRecording::tree_cpu(Ns time, bool whole_tree) const {
  Ns cpu = 0;
  for (uint32_t t = 0; t < program_.threads.size(); ++t) {
    uint32_t process = program_.threads[t].process;
    bool mine = process == process_;
    bool child = program_.processes[process].parent == process_;
    if (mine || (whole_tree && child)) cpu += cpu_until(t, time);
  }
  return cpu;
}

void ProcessRecording::add_counters() {
  if (!kept(trace::KIND_COUNTER)) return;
  trace::CounterBatch* batch = trace_.add_packet()->mutable_counters();
  auto sample = [&](trace::CounterKind kind, Ns time, int64_t value) {
    trace::CounterSample* s = batch->add_sample();
    s->set_kind(kind);
    s->set_time_ns(kRecordingBase + time);
    s->set_value(value);
  };
  sample(trace::COUNTER_CGROUP_QUOTA_MILLICPU, 0, program_.machine.cores * 1000);
  Ns period = std::max<Ns>(run_.end_ns / 12, 50'000'000);
  for (Ns t = 0; t <= run_.end_ns; t += period) {
    Ns tree = tree_cpu(t, true);
    sample(trace::COUNTER_PROCESS_CPU_NS, t, tree_cpu(t, false));
    sample(trace::COUNTER_TREE_CPU_NS, t, tree);
    sample(trace::COUNTER_CGROUP_CPU_NS, t, tree);
    sample(trace::COUNTER_SYSTEM_CPU_BUSY_NS, t, tree + t / 50);
  }
}

RecordedProcess ProcessRecording::finish() {
  const ProcessSpec& spec = program_.processes[process_];
  if (descriptor_table_.gpu_op_size() + descriptor_table_.host_call_size() > 0) {
    *trace_.add_packet()->mutable_descriptors() = std::move(descriptor_table_);
  }
  if (!name_texts_.empty()) {
    trace::NameTable* table = trace_.add_packet()->mutable_names();
    for (size_t i = 0; i < name_texts_.size(); ++i) {
      trace::NameTable::Entry* entry = table->add_entry();
      entry->set_id(static_cast<uint32_t>(i + 1));
      entry->set_text(name_texts_[i]);
    }
  }
  auto lost = [&](trace::Kind kind, uint64_t count) {
    if (count == 0) return;
    trace::Loss* loss = trace_.add_packet()->mutable_loss();
    loss->set_loss_kind(kind == trace::KIND_KERNEL ? trace::LOSS_CUPTI_DROPPED
                                                   : trace::LOSS_HOST_LOG_FULL);
    loss->set_kind(kind);
    loss->set_count(count);
  };
  lost(trace::KIND_KERNEL, dropped_ops_);
  lost(trace::KIND_CALL_LAUNCH, dropped_calls_);
  if (spec.worker) {  // ends in _exit and writes no footer, but a last event
    if (kept(trace::EVENT_WORKER_EXIT, 0) && !threads_.empty()) {
      const std::vector<Segment>& log = run_.threads[threads_.front()];
      const Ns end = log.empty() ? run_.end_ns : std::max(run_.end_ns, log.back().end_ns);
      add_event(trace::EVENT_WORKER_EXIT, threads_.front(), end, end)->set_a(0);
    }
  } else {
    trace::Footer* footer = trace_.add_packet()->mutable_footer();
    footer->set_end_ns(kRecordingBase + run_.end_ns);
    footer->set_gpu_ops(ops_);
    footer->set_host_calls(calls_);
    footer->set_host_events(events_ == nullptr ? 0 : static_cast<uint64_t>(events_->event_size()));
    footer->mutable_self()->set_wall_ns(run_.end_ns);
    footer->mutable_self()->set_estimated_cost_ns(-1);
  }
  RecordedProcess out;
  out.file_name = std::string(kHost) + "." + std::to_string(pid_of(process_, view_)) + "." +
                  std::to_string(kRecordingBase - 3'000'000'000 + process_) + ".1.istrace";
  out.trace = std::move(trace_);
  return out;
}

std::vector<RecordedProcess> record(const Program& program, const Execution& run,
                                    const ViewSpec& view) {
  std::vector<RecordedProcess> out;
  for (uint32_t p = 0; p < program.processes.size(); ++p) {
    bool worker = program.processes[p].worker;
    if (view.only_rank >= 0 && program.processes[p].rank != view.only_rank) continue;
    bool worker_events = std::find(view.removed.begin(), view.removed.end(),
                                   trace::KIND_LOADER_WORKER) == view.removed.end();
    if (worker && !worker_events) continue;
    ProcessRecording recording(program, run, view, p);
    if (!worker) {
      recording.add_device_side();
      recording.add_counters();
    }
    recording.add_host_events();
    out.push_back(recording.finish());
  }
  return out;
}

}  // namespace idlescope::simulate
