// A CUPTI and a GPU that exist only in a test: the function table of profiler/cuda with
// scripted errors, late buffers and drops, over a clock that the test moves.
//
// In: "CUDA calls" of the test (launch, copy, synchronize …). Out: the callbacks and activity
// buffers that the real CUPTI 12 or 13 would deliver. The same code, with the real clock, is
// the fake libcupti.so.13 that the injection library loads end to end (exports.cpp). One
// instance per process, because CUPTI is; all calls lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiler/cuda/cupti_api.h"

namespace fake_cupti {

struct Op {
  std::string name = "kernel";
  int64_t duration_ns = 1000;
  uint64_t stream = 0;
  uint64_t bytes = 0;
  int copy_kind = 1;  // cudaMemcpyKind
  uint32_t graph_id = 0;
  uint32_t graph_nodes = 0;
  bool driver_only = false;  // as Triton launches
};

// Starts anew: version, clock, no subscriber, no errors.
void reset(uint32_t version = 130001, bool virtual_clock = true);
const idlescope::cuda::CuptiApi& table();

// Clock. advance() completes what has ended by then.
int64_t now_ns();
void advance_ns(int64_t duration_ns);
// What a "CUDA call" takes on the host.
void set_call_ns(int64_t duration_ns);

// The next `count` calls of that CUPTI function return `result` (-1: all calls).
void fail(const std::string& function, CUptiResult result, int count = -1);
uint64_t calls(const std::string& function);
// Called at each call of a CUPTI function, on its thread.
void watch(std::function<void(const std::string& function)> watcher);
void hold_by_other_tool(const std::string& name);  // empty: released

// The application's calls. Each gives the correlation id it got.
uint32_t launch(const Op& op = {});
uint32_t copy(const Op& op);
uint32_t set_memory(const Op& op);
uint32_t launch_graph(const Op& op);
uint32_t synchronize_stream(uint64_t stream);
uint32_t synchronize_device();
uint32_t allocate(uint64_t bytes);
uint32_t record_event(uint64_t event, uint64_t stream);
uint32_t wait_event(uint64_t event, uint64_t stream);
uint32_t begin_capture(uint64_t stream);
uint32_t end_capture(uint64_t stream);
uint32_t query_stream(uint64_t stream);  // a call that nobody should record

// A launch that waits between its enter and the work of the driver (a full queue).
uint32_t launch_in_two_halves(const Op& op, const std::function<void()>& between);

// A call that is entered but not left until leave_call(): what a detach must wait for.
void enter_launch(const Op& op);
void leave_launch();

// True between subscribe and finalize.
bool attached();
bool kind_enabled(CUpti_ActivityKind kind);
uint64_t enabled_callbacks();
// The number of records that were dropped because no buffer was given.
uint64_t dropped();
// Makes request callbacks be ignored: everything is dropped.
void give_no_buffers(bool on);
// What was launched while kernels were enabled, since reset.
uint64_t kernels_traced();

}  // namespace fake_cupti
