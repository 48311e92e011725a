// One process of the recorder's view while it is being written: identity, name and
// descriptor tables, the file's packets.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/simulate/view.h"

namespace idlescope::simulate {

class ProcessRecording {
 public:
  ProcessRecording(const Program& program, const Execution& run, const ViewSpec& view,
                   uint32_t process);

  void add_device_side();  // devices, windows, ops, calls (main processes)
  void add_host_events();
  void add_counters();
  RecordedProcess finish();

  static int64_t pid_of(uint32_t process, const ViewSpec& view);
  uint32_t thread_id(uint32_t thread) const;

 private:
  struct CallRecord {
    uint32_t thread;
    uint32_t segment;
    uint32_t correlation;
  };

  void add_header();
  void add_window(uint32_t id, const WindowRun& window);
  void add_ops(uint32_t id, const WindowRun& window, const std::vector<CallRecord>& calls);
  void add_calls(uint32_t id, const WindowRun& window, const std::vector<CallRecord>& calls);
  void add_pin_allocations(const WindowRun& window, uint32_t correlation,
                           const std::function<void(Ns, Ns, uint32_t, uint32_t)>& add);
  std::vector<CallRecord> calls_in(const WindowRun& window) const;
  void add_thread_cpu(const WindowRun& window);
  void add_pin_events();
  void add_mark(uint32_t mark);
  void add_fetch_counters(const trace::HostEvent& fetch, const MarkSpec& spec, uint32_t thread);
  trace::HostEvent* add_event(trace::HostEventKind kind, uint32_t thread, Ns begin, Ns end);
  int64_t ready_batches(const BatchSpec& batch, Ns now, int64_t* in_flight) const;

  bool kept(trace::Kind kind) const;
  bool kept(trace::HostEventKind kind, int64_t category) const;
  uint32_t name(const std::string& text);
  std::string kernel_name(uint32_t name) const;
  uint32_t op_descriptor(const OpSpec& op, bool whole_graph);
  uint32_t call_descriptor(const CallSpec& call, uint32_t thread, bool driver);
  Ns cpu_until(uint32_t thread, Ns time) const;
  Ns tree_cpu(Ns time, bool whole_tree) const;

  static constexpr uint32_t pinned_name_ = kNone - 1;  // CallSpec.name of cudaHostAlloc

  const Program& program_;
  const Execution& run_;
  const ViewSpec& view_;
  Draws draws_;
  uint32_t process_;
  std::vector<uint32_t> threads_;  // of this process
  trace::Trace trace_;
  trace::HostEventBatch* events_ = nullptr;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<std::string> name_texts_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, int, uint64_t>, uint32_t>
      op_descriptors_;
  std::map<std::tuple<int, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t, bool>, uint32_t>
      call_descriptors_;
  trace::DescriptorTable descriptor_table_;
  uint64_t ops_ = 0;
  uint64_t calls_ = 0;
  uint64_t dropped_ops_ = 0;
  uint64_t dropped_calls_ = 0;
};

}  // namespace idlescope::simulate
