// The device side of a recording: windows, device records, host calls.
#include <algorithm>
#include <string>

#include "analysis/simulate/recorded_process.h"

namespace idlescope::simulate {
namespace {

constexpr uint32_t kContext = 1;
constexpr uint32_t kStreamIds[kStreams] = {7, 13, 17, 21};
constexpr uint64_t kStreamHandles[kStreams] = {0, 0x55D0A0C0, 0x55D0B1E0, 0x55D0C2F0};

trace::Kind kind_of(trace::CallClass call_class) {
  switch (call_class) {
    case trace::CALL_LAUNCH:
    case trace::CALL_MEMSET:
      return trace::KIND_CALL_LAUNCH;
    case trace::CALL_MEMCPY:
      return trace::KIND_CALL_COPY;
    case trace::CALL_STREAM_SYNC:
    case trace::CALL_DEVICE_SYNC:
    case trace::CALL_EVENT_SYNC:
      return trace::KIND_CALL_SYNC;
    case trace::CALL_ALLOC_DEVICE:
    case trace::CALL_FREE_DEVICE:
    case trace::CALL_ALLOC_PINNED:
    case trace::CALL_FREE_PINNED:
      return trace::KIND_CALL_ALLOC;
    case trace::CALL_MODULE_LOAD:
      return trace::KIND_CALL_MODULE;
    case trace::CALL_GRAPH_INSTANTIATE:
    case trace::CALL_GRAPH_LAUNCH:
    case trace::CALL_CAPTURE_BEGIN:
    case trace::CALL_CAPTURE_END:
      return trace::KIND_CALL_GRAPH;
    case trace::CALL_EVENT_RECORD:
    case trace::CALL_STREAM_WAIT_EVENT:
      return trace::KIND_CALL_EVENT;
    default:
      return trace::KIND_CALL_OTHER;
  }
}

trace::Kind kind_of(const OpSpec& op) {
  if (op.kind == trace::OP_MEMCPY) return trace::KIND_MEMCPY;
  return op.kind == trace::OP_MEMSET ? trace::KIND_MEMSET : trace::KIND_KERNEL;
}

}  // namespace

std::string ProcessRecording::kernel_name(uint32_t name) const {
  const std::string& text = program_.names[name];
  bool collective = text.find("nccl") != std::string::npos;
  if (!view_.rename_kernels || collective) return text;
  uint64_t hash = 0;
  for (char c : text) hash = key(hash, static_cast<unsigned char>(c));
  return "kernel_" + std::to_string(hash % 1000000);
}

uint32_t ProcessRecording::op_descriptor(const OpSpec& op, bool whole_graph) {
  trace::OpKind kind = whole_graph ? trace::OP_GRAPH : op.kind;
  auto found = op_descriptors_.try_emplace(
      std::tuple(op.name, op.stream, op.grid, op.node, op.bytes, static_cast<int>(kind),
                 (uint64_t{op.graph} << 16) +
                     static_cast<uint64_t>(op.copy_kind * 256 + op.src * 16 + op.dst)),
      0);
  if (!found.second) return found.first->second;
  trace::GpuOpDescriptor* d = descriptor_table_.add_gpu_op();
  d->set_id(static_cast<uint32_t>(descriptor_table_.gpu_op_size()));
  d->set_kind(kind);
  d->set_context_id(kContext);
  d->set_stream_id(kStreamIds[op.stream]);
  d->set_graph_id(op.graph);
  if (op.kind == trace::OP_KERNEL && !whole_graph) {
    d->set_name_id(name(kernel_name(op.name)));
    d->set_grid_x(op.grid);
    d->set_grid_y(1);
    d->set_grid_z(1);
    d->set_block_x(op.block);
    d->set_block_y(1);
    d->set_block_z(1);
    d->set_registers_per_thread(op.registers);
    if (op.graph != 0) d->set_graph_node_id(op.node + 1);
  }
  if (op.kind != trace::OP_KERNEL) {
    d->set_bytes(op.bytes);
    d->set_copy_kind(op.copy_kind);
    d->set_src_kind(op.src);
    d->set_dst_kind(op.dst);
    d->set_is_async(op.kind == trace::OP_MEMCPY);
  }
  found.first->second = d->id();
  return d->id();
}

uint32_t ProcessRecording::call_descriptor(const CallSpec& call, uint32_t thread, bool driver) {
  auto found =
      call_descriptors_.try_emplace(std::tuple(static_cast<int>(call.call_class), call.name, thread,
                                               call.stream, call.bytes, call.object, driver),
                                    0);
  if (!found.second) return found.first->second;
  trace::HostCallDescriptor* d = descriptor_table_.add_host_call();
  d->set_id(static_cast<uint32_t>(descriptor_table_.host_call_size()));
  d->set_call_class(call.call_class);
  std::string text = driver                      ? "cuLaunchKernel"
                     : call.name == pinned_name_ ? "cudaHostAlloc"
                                                 : program_.names[call.name];
  d->set_name_id(name(text));
  d->set_domain(text[2] == 'd' ? trace::HostCallDescriptor::DOMAIN_RUNTIME
                               : trace::HostCallDescriptor::DOMAIN_DRIVER);
  d->set_thread_id(thread_id(thread));
  d->set_stream_handle(kStreamHandles[call.stream]);
  d->set_context_id(kContext);
  d->set_bytes(call.bytes);
  d->set_copy_kind(call.copy_kind);
  d->set_object(call.object);
  found.first->second = d->id();
  return d->id();
}

void ProcessRecording::add_device_side() {
  const Machine& m = program_.machine;
  uint16_t rank = program_.processes[process_].rank;
  trace::Device* device = trace_.add_packet()->mutable_device();
  device->set_device_id(0);
  std::string uuid(16, '\0');
  uuid[0] = static_cast<char>(0x51);
  uuid[15] = static_cast<char>(rank);
  device->set_uuid(uuid);
  device->set_name("NVIDIA H200");
  device->set_compute_major(9);
  device->set_sm_count(static_cast<uint32_t>(m.sm_count));
  device->set_max_threads_per_sm(2048);
  device->set_max_blocks_per_sm(32);
  device->set_max_registers_per_sm(65536);
  device->set_max_shared_bytes_per_sm(233472);
  device->set_memory_bytes(150'000'000'000);
  device->set_warp_size(32);
  device->set_cuda_driver_version(13000);
  trace::Context* context = trace_.add_packet()->mutable_context();
  context->set_context_id(kContext);
  context->set_null_stream_id(kStreamIds[kComputeStream]);
  for (uint16_t s = 0; s < kStreams; ++s) {
    trace::Stream* stream = trace_.add_packet()->mutable_stream();
    stream->set_context_id(kContext);
    stream->set_stream_id(kStreamIds[s]);
    stream->set_handle(kStreamHandles[s]);
    stream->set_seen_ns(kRecordingBase);
  }
  uint32_t id = 0;
  for (const WindowRun& window : run_.windows) {
    if (window.rank == rank) add_window(++id, window);
  }
}

void ProcessRecording::add_window(uint32_t id, const WindowRun& window) {
  trace::WindowBegin* begin = trace_.add_packet()->mutable_window_begin();
  begin->set_window_id(id);
  begin->set_begin_ns(kRecordingBase + window.begin_ns);
  begin->set_cupti_version(130000);
  begin->set_cuda_driver_version(13000);
  begin->set_clock(trace::WindowBegin::CLOCK_MONOTONIC_HOST);
  begin->set_attach_ns(9'000'000);
  begin->set_reason("auto");
  for (int k = trace::KIND_KERNEL; k <= trace::KIND_CALL_OTHER; ++k) {
    auto kind = static_cast<trace::Kind>(k);
    bool never = kind == trace::KIND_OVERHEAD || kind == trace::KIND_CALL_OTHER ||
                 kind == (view_.opaque_graphs ? trace::KIND_GRAPH_NODE : trace::KIND_GRAPH_TRACE);
    if (!never && kept(kind)) begin->add_kinds(kind);
  }
  std::vector<CallRecord> calls = calls_in(window);
  uint64_t ops_before = ops_;
  uint64_t calls_before = calls_;
  add_ops(id, window, calls);
  add_calls(id, window, calls);
  add_thread_cpu(window);
  trace::WindowEnd* end = trace_.add_packet()->mutable_window_end();
  end->set_window_id(id);
  end->set_end_ns(kRecordingBase + window.end_ns);
  end->set_detach_ns(3'500'000);
  end->set_records(ops_ - ops_before);
  end->set_calls(calls_ - calls_before);
  end->set_per_call_cost_ns(program_.machine.record_call_ns);
  end->set_reason("steps");
}

// API calls that began inside the window, in order of begin; the position is the
// correlation id.
std::vector<ProcessRecording::CallRecord> ProcessRecording::calls_in(
    const WindowRun& window) const {
  std::vector<CallRecord> calls;
  for (uint32_t t : threads_) {
    if (program_.threads[t].role == Role::kPin) continue;
    const std::vector<Segment>& log = run_.threads[t];
    for (uint32_t s = 0; s < log.size(); ++s) {
      const Instruction& in = program_.threads[t].code[log[s].instruction];
      bool api = in.what == Do::kLaunch || in.what == Do::kSync || in.what == Do::kCall;
      if (api && log[s].begin_ns >= window.begin_ns && log[s].begin_ns < window.end_ns) {
        calls.push_back({t, s, 0});
      }
    }
  }
  std::sort(calls.begin(), calls.end(), [&](const CallRecord& a, const CallRecord& b) {
    Ns x = run_.threads[a.thread][a.segment].begin_ns;
    Ns y = run_.threads[b.thread][b.segment].begin_ns;
    return x != y ? x < y : a.thread < b.thread;
  });
  for (uint32_t i = 0; i < calls.size(); ++i) calls[i].correlation = 100 + 3 * i;
  return calls;
}

void ProcessRecording::add_ops(uint32_t id, const WindowRun& window,
                               const std::vector<CallRecord>& calls) {
  struct Record {
    Ns begin;
    Ns end;
    uint32_t descriptor;
    uint32_t correlation;
  };
  std::vector<Record> records;
  uint64_t incomplete = 0;
  Ns error = draws_.uniform(-view_.clock_error_ns, view_.clock_error_ns, 1, id);
  for (const CallRecord& call : calls) {
    const Segment& segment = run_.threads[call.thread][call.segment];
    const Instruction& in = program_.threads[call.thread].code[segment.instruction];
    if (in.what != Do::kLaunch) continue;
    const OpSpec& first = program_.ops[in.arg];
    if (!kept(kind_of(first))) continue;
    bool opaque = first.graph != 0 && view_.opaque_graphs;
    uint32_t step = opaque ? in.count : 1;
    for (uint32_t i = 0; i < in.count; i += step) {
      const OpSpec& spec = program_.ops[in.arg + i];
      const OpRun& op = run_.ops[in.arg + i];
      Ns end = run_.ops[in.arg + i + step - 1].end_ns;
      if (end > window.end_ns) {
        ++incomplete;
        continue;
      }
      if (draws_.uniform(0, 999'999, 2, key(id, in.arg + i)) < view_.drop_per_million) {
        ++dropped_ops_;
        continue;
      }
      records.push_back(
          {op.begin_ns + error, end + error, op_descriptor(spec, opaque), call.correlation});
      if (spec.communication && kept(trace::KIND_NVTX)) {
        trace::Collective* c = trace_.add_packet()->mutable_collective();
        c->set_communicator(0xC0FFEE);
        c->set_sequence(spec.collective);
        c->set_name_id(name("AllReduce"));
        c->set_bytes(spec.bytes);
        c->set_ranks(program_.ranks);
        c->set_correlation_id(call.correlation);
        c->set_window_id(id);
        c->set_begin_ns(kRecordingBase + segment.begin_ns - 2000);
        c->set_end_ns(kRecordingBase + segment.end_ns);
        c->set_thread_id(thread_id(call.thread));
      }
    }
  }
  if (incomplete > 0) {
    trace::Loss* loss = trace_.add_packet()->mutable_loss();
    loss->set_loss_kind(trace::LOSS_INCOMPLETE);
    loss->set_kind(trace::KIND_KERNEL);
    loss->set_window_id(id);
    loss->set_count(incomplete);
  }
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.correlation < b.correlation;
  });
  trace::GpuOpBatch* batch = nullptr;
  Ns begin = 0;
  uint32_t correlation = 0;
  for (const Record& r : records) {
    if (batch == nullptr || batch->descriptor_id_size() >= 4096) {
      batch = trace_.add_packet()->mutable_gpu_ops();
      batch->set_window_id(id);
      batch->set_base_ns(kRecordingBase + r.begin);
      begin = r.begin;
      correlation = 0;
    }
    batch->add_descriptor_id(r.descriptor);
    batch->add_begin_delta_ns(r.begin - begin);
    batch->add_duration_ns(static_cast<uint64_t>(r.end - r.begin));
    batch->add_correlation_delta(static_cast<int32_t>(r.correlation) -
                                 static_cast<int32_t>(correlation));
    begin = r.begin;
    correlation = r.correlation;
    ++ops_;
  }
}

// The pin thread's own allocations of pinned memory.
void ProcessRecording::add_pin_allocations(
    const WindowRun& window, uint32_t correlation,
    const std::function<void(Ns, Ns, uint32_t, uint32_t)>& add) {
  if (!kept(trace::KIND_CALL_ALLOC)) return;
  for (uint32_t t : threads_) {
    if (program_.threads[t].role != Role::kPin) continue;
    for (const Segment& s : run_.threads[t]) {
      const PinItem& item = program_.pin_items[s.instruction];
      Ns end = s.begin_ns + item.allocate_ns;
      if (item.allocate_ns == 0 || s.begin_ns < window.begin_ns || end > window.end_ns) continue;
      CallSpec call;
      call.call_class = trace::CALL_ALLOC_PINNED;
      call.name = pinned_name_;
      call.bytes = 16 << 20;
      add(s.begin_ns, end, call_descriptor(call, t, false), ++correlation);
    }
  }
}

void ProcessRecording::add_calls(uint32_t id, const WindowRun& window,
                                 const std::vector<CallRecord>& calls) {
  trace::HostCallBatch* batch = nullptr;
  Ns previous = 0;
  uint32_t correlation = 0;
  auto add = [&](Ns begin, Ns end, uint32_t descriptor, uint32_t corr) {
    if (batch == nullptr || batch->descriptor_id_size() >= 4096) {
      batch = trace_.add_packet()->mutable_host_calls();
      batch->set_window_id(id);
      batch->set_base_ns(kRecordingBase + begin);
      previous = begin;
      correlation = 0;
    }
    batch->add_descriptor_id(descriptor);
    batch->add_begin_delta_ns(begin - previous);
    batch->add_duration_ns(static_cast<uint64_t>(end - begin));
    batch->add_correlation_delta(static_cast<int32_t>(corr) - static_cast<int32_t>(correlation));
    previous = begin;
    correlation = corr;
    ++calls_;
  };
  add_pin_allocations(window, static_cast<uint32_t>(100 + 3 * calls.size()), add);
  for (const CallRecord& call : calls) {
    const Segment& segment = run_.threads[call.thread][call.segment];
    const Instruction& in = program_.threads[call.thread].code[segment.instruction];
    const CallSpec& spec = program_.calls[in.call];
    if (!kept(kind_of(spec.call_class))) continue;
    if (segment.end_ns > run_.end_ns) continue;
    if (draws_.uniform(0, 999'999, 3, key(id, call.correlation)) < view_.drop_per_million) {
      ++dropped_calls_;
      continue;
    }
    add(segment.begin_ns, segment.end_ns, call_descriptor(spec, call.thread, false),
        call.correlation);
    bool nested = view_.driver_calls && spec.call_class == trace::CALL_LAUNCH && in.count == 1 &&
                  program_.ops[in.arg].name % 4 == 1 && segment.end_ns - segment.begin_ns > 1500;
    if (nested) {
      add(segment.begin_ns + 400, segment.end_ns - 300, call_descriptor(spec, call.thread, true),
          call.correlation);
    }
  }
}

}  // namespace idlescope::simulate
