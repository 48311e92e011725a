// A recording written by hand, for tests: calls, ops and events with times in ms.
//
//   Scene s;
//   const uint32_t c = s.launch(7.0, 7.004);
//   s.kernel(7.010, 9.5, c);
//   const diagnose::Analysis a = diagnose::analyze(s.take());
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/diagnose/diagnose.h"
#include "analysis/read/arrange.h"
#include "analysis/read/recording.h"

namespace idlescope::test {

using read::Ns;

inline Ns ms(double value) { return std::llround(value * 1e6); }

inline constexpr uint32_t kMain = 100;

struct EventFields {
  uint32_t thread = kMain;
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t batch = -1;
  int64_t a = -1;
  int64_t b = -1;
  int64_t c = -1;
};

class Scene {
 public:
  explicit Scene(int ranks = 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      read::Process& process = add_process(1000 + rank);
      if (ranks > 1) {
        trace::Process* identity = process.header.mutable_process();
        identity->set_has_rank(true);
        identity->set_rank(rank);
        identity->set_world_size(ranks);
      }
      read::Device device;
      device.info.set_device_id(static_cast<uint32_t>(rank));
      device.info.set_sm_count(132);
      device.info.set_max_threads_per_sm(2048);
      device.info.set_max_blocks_per_sm(32);
      device.identity = "gpu" + std::to_string(rank);
      process.devices.push_back(device);
      process.main_thread = kMain;
    }
  }

  // Everything that follows is about this process.
  Scene& in(size_t process) {
    current_ = process;
    return *this;
  }
  size_t add_worker(int64_t pid) {
    read::Process& process = add_process(pid);
    process.header.mutable_process()->set_role(trace::Process::ROLE_LOADER_WORKER);
    return recording_.processes.size() - 1;
  }

  uint32_t window(double begin, double end) {
    read::Window window;
    window.id = static_cast<uint32_t>(here().windows.size() + 1);
    window.begin_ns = ms(begin);
    window.end_ns = ms(end);
    window.closed = true;
    here().windows.push_back(window);
    return window.id;
  }

  // Returns the correlation.
  uint32_t call(trace::CallClass call_class, const std::string& name, double begin, double end,
                uint32_t thread = kMain, uint64_t bytes = 0,
                trace::CopyKind copy = trace::COPY_UNKNOWN, uint32_t stream = 7) {
    read::CallDescriptor descriptor;
    descriptor.call_class = call_class;
    descriptor.copy_kind = copy;
    descriptor.name = recording_.strings.add(name);
    descriptor.thread_id = thread;
    descriptor.bytes = bytes;
    descriptor.stream = stream_index(stream);
    read::Call call;
    call.begin_ns = ms(begin);
    call.end_ns = ms(end);
    call.descriptor = static_cast<uint32_t>(here().call_descriptors.size());
    call.window = window_at(call.begin_ns);
    call.correlation = ++correlation_;
    here().call_descriptors.push_back(descriptor);
    here().calls.push_back(call);
    return correlation_;
  }
  uint32_t launch(double begin, double end, uint32_t thread = kMain) {
    return call(trace::CALL_LAUNCH, "cudaLaunchKernel", begin, end, thread);
  }
  uint32_t sync(double begin, double end, uint32_t thread = kMain) {
    return call(trace::CALL_STREAM_SYNC, "cudaStreamSynchronize", begin, end, thread);
  }
  uint32_t copy_call(double begin, double end, uint64_t bytes, trace::CopyKind kind,
                     uint32_t thread = kMain) {
    return call(trace::CALL_MEMCPY, "cudaMemcpyAsync", begin, end, thread, bytes, kind);
  }

  void kernel(double begin, double end, uint32_t correlation, uint32_t stream = 7,
              const std::string& name = "gemm", uint32_t blocks = 264) {
    read::OpDescriptor descriptor;
    descriptor.kind = trace::OP_KERNEL;
    descriptor.name = recording_.strings.add(name);
    descriptor.grid[0] = blocks;
    descriptor.grid[1] = descriptor.grid[2] = 1;
    descriptor.block[0] = 1024;
    descriptor.block[1] = descriptor.block[2] = 1;
    add_op(descriptor, begin, end, correlation, stream);
  }
  void copy(trace::CopyKind kind, trace::MemoryKind host, uint64_t bytes, double begin, double end,
            uint32_t correlation, uint32_t stream = 7) {
    read::OpDescriptor descriptor;
    descriptor.kind = trace::OP_MEMCPY;
    descriptor.copy_kind = kind;
    descriptor.bytes = bytes;
    descriptor.src_kind = kind == trace::COPY_H2D ? host : trace::MEMORY_DEVICE;
    descriptor.dst_kind = kind == trace::COPY_D2H ? host : trace::MEMORY_DEVICE;
    add_op(descriptor, begin, end, correlation, stream);
  }
  void memset(double begin, double end, uint32_t correlation, uint32_t stream = 7) {
    read::OpDescriptor descriptor;
    descriptor.kind = trace::OP_MEMSET;
    add_op(descriptor, begin, end, correlation, stream);
  }

  void event(trace::HostEventKind kind, double begin, double end, const EventFields& fields = {}) {
    read::HostEvent event;
    event.kind = kind;
    event.thread_id = fields.thread;
    event.begin_ns = ms(begin);
    event.end_ns = ms(end);
    event.iterator = fields.iterator;
    event.epoch = fields.epoch;
    event.batch = fields.batch;
    event.a = fields.a;
    event.b = fields.b;
    event.c = fields.c;
    here().host_events.push_back(event);
  }
  void step(double at) {
    event(trace::EVENT_STEP, at, at, {.a = trace::STEP_SOURCE_API, .b = ++step_});
  }
  void range(const std::string& name, trace::RangeCategory category, double begin, double end,
             uint32_t thread = kMain) {
    event(trace::EVENT_RANGE, begin, end,
          {.thread = thread, .a = recording_.strings.add(name), .b = category, .c = 0});
  }
  void overhead(trace::OverheadKind kind, double begin, double end, uint32_t thread = kMain) {
    here().overheads.push_back({kind, thread, ms(begin), ms(end)});
  }

  read::Process& here() { return recording_.processes[current_]; }
  read::Recording& recording() { return recording_; }

  read::Recording take() {
    for (read::Process& process : recording_.processes) read::arrange(process);
    return std::move(recording_);
  }

 private:
  read::Process& add_process(int64_t pid) {
    read::Process& process = recording_.processes.emplace_back();
    trace::Process* identity = process.header.mutable_process();
    identity->set_host("node");
    identity->set_pid(pid);
    identity->set_cpu_count(16);
    return process;
  }
  uint32_t window_at(Ns time) {
    for (uint32_t i = 0; i < here().windows.size(); ++i) {
      if (here().windows[i].begin_ns <= time && time < here().windows[i].end_ns) return i;
    }
    return read::kNone;
  }
  uint32_t stream_index(uint32_t id) {
    for (uint32_t i = 0; i < here().streams.size(); ++i) {
      if (here().streams[i].stream_id == id) return i;
    }
    here().streams.push_back({1, id, 0});
    return static_cast<uint32_t>(here().streams.size() - 1);
  }
  void add_op(read::OpDescriptor descriptor, double begin, double end, uint32_t correlation,
              uint32_t stream) {
    descriptor.device = 0;
    descriptor.context_id = 1;
    descriptor.stream = stream_index(stream);
    read::Op op;
    op.begin_ns = ms(begin);
    op.end_ns = ms(end);
    op.descriptor = static_cast<uint32_t>(here().op_descriptors.size());
    op.window = window_at(op.begin_ns);
    op.correlation = correlation;
    here().op_descriptors.push_back(descriptor);
    here().ops.push_back(op);
  }

  read::Recording recording_;
  size_t current_ = 0;
  uint32_t correlation_ = 0;
  int64_t step_ = 0;
};

inline const diagnose::DeviceDiagnosis& device_of(const diagnose::Diagnosis& diagnosis) {
  return diagnosis.devices.at(diagnosis.chosen_device);
}

// Total of a leaf of the chosen device, ns.
inline Ns leaf(const diagnose::Diagnosis& diagnosis, report::Leaf leaf) {
  for (const diagnose::LeafTime& time : device_of(diagnosis).leaves) {
    if (time.leaf == leaf) return time.total_ns;
  }
  return 0;
}

inline Ns sum_of_leaves(const diagnose::DeviceDiagnosis& device) {
  Ns sum = 0;
  for (const diagnose::LeafTime& time : device.leaves) sum += time.total_ns;
  return sum;
}

}  // namespace idlescope::test
