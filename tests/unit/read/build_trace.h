// Builds small traces for tests, in the recorder's own form.
//
// In: facts, in any order. Out: a trace.Trace or its bytes. Ids are handed out here, so that
// a test reads as what happened: trace.kernel("gemm", 100, 200, corr).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "proto/trace.pb.h"

namespace idlescope::test {

class TraceBuilder {
 public:
  TraceBuilder() {
    trace::Header* header = packet()->mutable_header();
    header->set_format_major(1);
    header->set_tool("test");
    header->mutable_process()->set_host("node1");
    header->mutable_process()->set_pid(kPid);
    header->mutable_process()->set_role(trace::Process::ROLE_MAIN);
  }

  static constexpr uint32_t kPid = 100;  // also the main thread

  trace::Trace& trace() { return trace_; }
  trace::Header* header() { return trace_.mutable_packet(0)->mutable_header(); }
  trace::Packet* packet() { return trace_.add_packet(); }
  std::string bytes() const { return trace_.SerializeAsString(); }

  uint32_t name(std::string_view text) {
    trace::NameTable::Entry* entry = packet()->mutable_names()->add_entry();
    entry->set_id(++names_);
    entry->set_text(std::string(text));
    return names_;
  }

  // Later ops and calls belong to it. end_ns 0: no WindowEnd.
  void window(uint32_t id, int64_t begin_ns, int64_t end_ns) {
    window_ = id;
    trace::WindowBegin* begin = packet()->mutable_window_begin();
    begin->set_window_id(id);
    begin->set_begin_ns(begin_ns);
    begin->set_clock(trace::WindowBegin::CLOCK_MONOTONIC_HOST);
    for (const trace::Kind kind :
         {trace::KIND_KERNEL, trace::KIND_MEMCPY, trace::KIND_MEMSET, trace::KIND_CALL_LAUNCH,
          trace::KIND_CALL_COPY, trace::KIND_CALL_SYNC}) {
      begin->add_kinds(kind);
    }
    if (end_ns == 0) return;
    trace::WindowEnd* end = packet()->mutable_window_end();
    end->set_window_id(id);
    end->set_end_ns(end_ns);
  }

  uint32_t op_descriptor(trace::OpKind kind, std::string_view text, uint32_t stream = 7) {
    const uint32_t name_id = text.empty() ? 0 : name(text);
    trace::GpuOpDescriptor* op = packet()->mutable_descriptors()->add_gpu_op();
    op->set_id(++ops_);
    op->set_kind(kind);
    op->set_name_id(name_id);
    op->set_context_id(1);
    op->set_stream_id(stream);
    return ops_;
  }

  uint32_t call_descriptor(trace::CallClass call_class, std::string_view text,
                           uint32_t thread_id = kPid, bool driver = false) {
    const uint32_t name_id = name(text);
    trace::HostCallDescriptor* call = packet()->mutable_descriptors()->add_host_call();
    call->set_id(++calls_);
    call->set_call_class(call_class);
    call->set_name_id(name_id);
    call->set_thread_id(thread_id);
    call->set_context_id(1);
    call->set_domain(driver ? trace::HostCallDescriptor::DOMAIN_DRIVER
                            : trace::HostCallDescriptor::DOMAIN_RUNTIME);
    return calls_;
  }

  void op(uint32_t descriptor, int64_t begin_ns, int64_t end_ns, uint32_t correlation) {
    fill(packet()->mutable_gpu_ops(), descriptor, begin_ns, end_ns, correlation);
  }
  void call(uint32_t descriptor, int64_t begin_ns, int64_t end_ns, uint32_t correlation) {
    fill(packet()->mutable_host_calls(), descriptor, begin_ns, end_ns, correlation);
  }

  trace::HostEvent* event(trace::HostEventKind kind, int64_t begin_ns, int64_t end_ns,
                          uint32_t thread_id = kPid) {
    trace::HostEvent* event = packet()->mutable_host_events()->add_event();
    event->set_kind(kind);
    event->set_thread_id(thread_id);
    event->set_begin_ns(begin_ns);
    event->set_end_ns(end_ns);
    event->set_batch(-1);
    return event;
  }

 private:
  template <typename Batch>
  void fill(Batch* batch, uint32_t descriptor, int64_t begin_ns, int64_t end_ns,
            uint32_t correlation) {
    batch->set_window_id(window_);
    batch->set_base_ns(begin_ns);
    batch->add_descriptor_id(descriptor);
    batch->add_begin_delta_ns(0);
    batch->add_duration_ns(static_cast<uint64_t>(end_ns - begin_ns));
    batch->add_correlation_delta(static_cast<int32_t>(correlation));
  }

  trace::Trace trace_;
  uint32_t window_ = 1;
  uint32_t names_ = 0;
  uint32_t ops_ = 0;
  uint32_t calls_ = 0;
};

}  // namespace idlescope::test
