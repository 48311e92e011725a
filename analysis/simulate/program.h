// A training job as data: what each host thread does in order, which device ops it launches
// and what they depend on. All durations are drawn before the run, so that a changed program
// (one cause removed, one fix applied) differs only in what was changed.
//
// In: filled by program_builder.h. Out: executed by engine.h, labelled by truth.h, written
// as a recording by view.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/simulate/machine.h"
#include "proto/report.pb.h"
#include "proto/trace.pb.h"

namespace idlescope::simulate {

using report::Leaf;
inline constexpr uint32_t kNone = UINT32_MAX;

// Streams of one rank's device.
enum StreamIndex : uint16_t {
  kComputeStream = 0,
  kCopyStream = 1,
  kCommStream = 2,
  kSideStream = 3
};
inline constexpr uint16_t kStreams = 4;

struct OpSpec {
  trace::OpKind kind = trace::OP_KERNEL;
  trace::CopyKind copy_kind{};
  trace::MemoryKind src{};
  trace::MemoryKind dst{};
  bool communication = false;
  uint16_t rank = 0;
  uint16_t stream = kComputeStream;
  uint32_t name = 0;  // Program::names
  uint32_t grid = 0;
  uint32_t block = 0;
  uint32_t registers = 0;
  uint64_t bytes = 0;
  Ns duration_ns = 0;      // collectives: of the transfer, once all ranks are there
  uint32_t first_dep = 0;  // Program::deps: ops it waits for through events
  uint32_t dep_count = 0;
  uint32_t collective = kNone;  // Program::collective_ranks
  uint32_t graph = 0;           // != 0: node of a graph launch
  uint32_t node = 0;
  Leaf exposed_leaf = report::BUSY_COPY_EXPOSED;  // label where compute waits for it
};

enum class Do : uint8_t {
  kRun,     // `ns` of CPU work
  kPause,   // `ns` off the CPU
  kIo,      // `ns` of storage work; shares the rank's storage with other threads
  kLaunch,  // API call that launches ops [arg, arg + count)
  kSync,    // API call that waits for the ops targets[arg … arg + count), then works `ns`
  kCall,    // any other API call, `ns` long
  kSet,     // sets flag `arg`
  kAwait,   // waits for flag `arg`; wakes `ns` after it was set
  kLock,    // takes lock `arg`
  kUnlock,
  kMarkBegin,  // mark `arg`
  kMarkEnd,
  kWindowOpen,  // the recorder attaches to this rank
  kWindowClose,
};

struct Instruction {
  Do what = Do::kRun;
  bool blocking = false;  // kLaunch: returns when its last op has ended
  bool hop = false;       // kAwait: another thread of the rank does this thread's work
  Leaf leaf = report::LEAF_UNSPECIFIED;  // what this time is, if a device waits for it
  uint32_t arg = 0;
  uint32_t count = 0;
  uint32_t call = kNone;  // Program::calls, for API calls
  Ns ns = 0;
};

enum class Role : uint8_t { kMain, kAutograd, kBackground, kWorker, kFeeder, kPin };

struct ThreadSpec {
  Role role = Role::kMain;
  uint16_t rank = 0;
  uint32_t process = 0;       // Program::processes
  bool shared_cores = false;  // competes for Machine::worker_cores
  std::vector<Instruction> code;
};

struct ProcessSpec {
  uint16_t rank = 0;
  bool worker = false;
  uint32_t parent = kNone;
  int32_t worker_number = -1;
};

struct CallSpec {
  trace::CallClass call_class{};
  trace::CopyKind copy_kind{};
  uint32_t name = 0;
  uint16_t stream = kComputeStream;
  uint64_t bytes = 0;
  uint64_t object = 0;
};

// A host event of the recording; times come from the run.
struct MarkSpec {
  trace::HostEventKind kind{};
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t batch = -1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  bool a_is_name = false;  // a indexes Program::names
  bool c_is_name = false;
  uint32_t batch_index = kNone;  // Program::batches
  Ns io_bytes = 0;               // WORKER_FETCH: bytes read
  bool blocks_read = false;      // they came from a block device through read()
  bool faults = false;           // … through a mapping
};

// One batch on its way through the loader; flags and threads that carry it.
struct BatchSpec {
  uint32_t iterator = 0;
  uint32_t epoch = 0;
  int64_t index = 0;
  uint32_t issued_flag = kNone;
  uint32_t put_flag = kNone;    // worker is done with it
  uint32_t sent_flag = kNone;   // it reached the main process
  uint32_t ready_flag = kNone;  // the main thread can take it
  uint32_t worker_thread = kNone;
  uint32_t feeder_thread = kNone;
  uint32_t pin_thread = kNone;
  int32_t worker_number = -1;
};

// One item for a pin thread: it takes items in order of arrival.
struct PinItem {
  uint32_t thread = kNone;
  uint32_t batch = kNone;
  Ns unpickle_ns = 0;
  Ns copy_ns = 0;
  Ns allocate_ns = 0;  // pinned allocation before the copy, holds the driver lock
  uint32_t result_flag = kNone;
};

struct StepMark {
  uint16_t rank = 0;
  uint32_t mark = 0;         // the EVENT_STEP mark
  bool macro = true;         // ends an optimizer step of the first optimizer
  uint32_t last_op = kNone;  // last op launched before it
};

struct Program {
  Machine machine;
  uint16_t ranks = 1;
  std::vector<std::string> names{""};
  std::vector<OpSpec> ops;
  std::vector<uint32_t> deps;
  std::vector<uint32_t> targets;
  std::vector<ThreadSpec> threads;
  std::vector<ProcessSpec> processes;
  std::vector<CallSpec> calls;
  std::vector<MarkSpec> marks;
  std::vector<BatchSpec> batches;
  std::vector<PinItem> pin_items;
  std::vector<uint32_t> pin_item_of_flag;  // by flag; kNone: not a hand-over
  std::vector<StepMark> steps;
  std::vector<uint32_t> collective_ranks;  // how many ranks take part
  uint32_t flags = 0;
  uint32_t locks = 0;           // the first `ranks` locks are the ranks' driver locks
  int64_t storage_streams = 0;  // reads that run at full speed at the same time; 0: any
  uint32_t first_steady_step = 0;
  uint32_t micro_steps = 1;
};

}  // namespace idlescope::simulate
