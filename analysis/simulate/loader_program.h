// The PyTorch DataLoader as programs of its processes and threads: main thread's next(),
// workers, their feeder threads, the pin thread.
//
// Behaviour (torch/utils/data/dataloader.py, _utils/worker.py, _utils/pin_memory.py): batch k
// goes to the k-th worker in turn; w·prefetch indices are issued at the start and one more
// each time next() delivers; batches are handed out strictly in order; pickling happens in a
// feeder thread after put() returned; one pin thread serves batches in order of arrival and
// does the unpickling, without it the main thread does; persistent workers skip the restart.
#pragma once

#include <vector>

#include "analysis/simulate/loop_spec.h"
#include "analysis/simulate/program_builder.h"

namespace idlescope::simulate {

class LoaderProgram {
 public:
  // Writes to `main` (creation of iterators, next() calls). `iterator` numbers from 1.
  LoaderProgram(ProgramBuilder* builder, const LoaderSpec& spec, const Draws& draws, uint16_t rank,
                uint32_t process, uint32_t main, uint32_t iterator, int total_batches,
                Ns inline_extra_cpu_ns);

  // Code of one `for batch in loader` turn on the main thread.
  void next();
  // Code that ends the last epoch.
  void finish();

 private:
  struct Epoch {
    uint32_t number = 0;
    int batches = 0;
    int first = 0;
    std::vector<uint32_t> batch;  // Program::batches
  };

  void begin_epoch();
  void end_epoch();
  void make_workers(Epoch* epoch, bool start_processes);
  void worker_batch(uint32_t worker, uint32_t feeder, uint32_t batch, int64_t global_index,
                    int worker_number);
  void inline_batch(uint32_t batch, int64_t global_index);
  void fetch(uint32_t thread, uint32_t batch, int64_t global_index, int worker_number);
  Ns drawn(Ns mean, uint64_t what, int64_t index) const;
  MarkSpec mark(trace::HostEventKind kind, uint32_t batch) const;

  ProgramBuilder* builder_;
  LoaderSpec spec_;
  Draws draws_;
  uint16_t rank_;
  uint32_t process_;
  uint32_t main_;
  uint32_t iterator_;
  int total_batches_;
  int per_epoch_;
  Ns inline_extra_cpu_ns_;
  int delivered_ = 0;
  int in_epoch_ = 0;
  uint32_t epoch_number_ = 0;
  Epoch epoch_;
  std::vector<uint32_t> worker_threads_;
  std::vector<uint32_t> feeder_threads_;
  uint32_t pin_thread_ = kNone;
};

}  // namespace idlescope::simulate
