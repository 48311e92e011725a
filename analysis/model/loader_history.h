// The life of every batch: from the worker that fetched it to the next() that returned it.
//
// In: loader events of the main process, its pin thread and its worker processes (other
// files, tied by pid) or worker threads. Out: iterators, their workers and batches.
//
//   main     next(k) ├───────────────────────────────────┤
//   worker     fetch ├───────────────┤collate├┤ put
//   feeder                                     pickle ├──┤
//   pin thread                                            copy ├─┤
//
// Times that were not recorded are 0, counters −1. The key of a batch is (process,
// iterator, epoch, index); workers know neither iterator nor epoch: the iterator follows
// from the pid, the epoch from indices that start again.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/read/recording.h"

namespace idlescope::model {

using read::kNone;
using read::Ns;

struct Batch {
  uint32_t iterator = 0;  // index into LoaderHistory::iterators
  uint32_t epoch = 0;
  int64_t index = -1;
  uint32_t next_event = kNone;  // Process::host_events of the main process
  Ns next_begin_ns = 0;
  Ns next_end_ns = 0;
  int64_t ready = -1;       // queue depth at the call
  uint32_t worker = kNone;  // index into Iterator::workers; kNone: main process/unknown
  Ns fetch_begin_ns = 0;
  Ns fetch_end_ns = 0;
  Ns collate_ns = -1;
  int64_t samples = -1;
  Ns cpu_ns = -1;  // thread CPU during the fetch
  Ns process_cpu_ns = -1;
  Ns run_queue_ns = -1;
  int64_t major_faults = -1;
  int64_t blocks_read = -1;
  int64_t bytes_read = -1;
  Ns put_end_ns = 0;
  Ns pickle_begin_ns = 0;
  Ns pickle_end_ns = 0;
  Ns pin_begin_ns = 0;  // the pin thread had received it
  Ns pin_end_ns = 0;
  Ns pin_put_end_ns = 0;

  bool fetched() const { return fetch_end_ns > fetch_begin_ns; }
  bool counted() const { return cpu_ns >= 0; }
  // Wall time of the fetch in which its thread neither ran nor waited for a CPU.
  Ns blocked_ns() const;
  // The blocked part reads from a device (blocks or major faults), else it waits for
  // something else.
  bool blocked_on_storage() const;
};

struct Worker {
  int32_t number = -1;
  int64_t id = 0;            // pid, or native thread id of thread workers
  uint32_t process = kNone;  // Recording::processes; kNone: no file of it
  Ns started_ns = 0;
  Ns loop_begin_ns = 0;           // 0: unknown
  Ns last_ns = 0;                 // last thing it was seen to do
  bool empty = false;             // its dataset had nothing for it
  std::vector<uint32_t> batches;  // LoaderHistory::batches, in order of fetch
};

struct Iterator {
  uint32_t id = 0;  // as recorded
  uint32_t process = 0;
  Ns create_begin_ns = 0;  // 0,0: construction was not recorded
  Ns create_end_ns = 0;
  bool by_name_only = false;  // a loader whose inside is not followed
  int64_t num_workers = -1;
  int64_t prefetch = -1;
  int64_t flags = -1;  // trace::LoaderFlag; −1: unknown
  int64_t batch_size = -1;
  uint32_t site = 0;  // Strings
  uint32_t inner_site = 0;
  uint32_t dataset = 0;
  std::vector<uint32_t> batches;  // LoaderHistory::batches, delivered ones by next_begin
  std::vector<Worker> workers;
  std::vector<uint32_t> epoch_events;  // host events: RESET, END, SHUTDOWN, CREATE

  bool has(trace::LoaderFlag flag) const { return flags >= 0 && (flags & flag) != 0; }
};

struct LoaderHistory {
  std::vector<Iterator> iterators;
  std::vector<Batch> batches;
  std::vector<uint32_t> unseen;  // Strings: loaders known by name only
  // Batch of a LOADER_NEXT event of a process; kNone: none.
  uint32_t batch_of(uint32_t process, uint32_t event) const;
  // Worker processes found (Recording::processes indices).
  std::vector<uint32_t> worker_processes;

 private:
  friend class LoaderBuilder;
  struct Key {
    uint32_t process;
    uint32_t event;
    uint32_t batch;
  };
  std::vector<Key> by_event_;  // sorted
};

LoaderHistory build_loader_history(const read::Recording& recording);

}  // namespace idlescope::model
