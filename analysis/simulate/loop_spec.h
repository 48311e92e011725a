// Parameters of one training job: the model, its loader, copies, synchronisations, host work
// and everything that can go wrong. Pure data. All times are per call, batch or step as the
// comment says; 0 switches a part off.
#pragma once

#include <array>
#include <cstdint>

#include "analysis/simulate/draws.h"

namespace idlescope::simulate {

struct ModelSpec {
  int layers = 6;
  int kernels_per_layer = 4;   // forward; backward launches twice as many
  Ns kernel_ns = 60000;        // median
  int64_t kernel_sigma = 700;  // spread, thousandths of an octave
  Ns dispatch_ns = 4000;       // Python and ATen work before each launch call
  Ns extra_dispatch_ns = 0;    // per step, spread over forward and backward launches
  int optimizer_kernels = 4;   // 4: foreach/fused; hundreds: for loop
  Ns optimizer_kernel_ns = 80000;
  Ns extra_optimizer_ns = 0;    // host work per step, spread over optimizer launches
  bool autograd_thread = true;  // backward launches from its own thread
  bool graph = false;           // forward and backward are one graph launch
  bool two_streams = false;     // kernels alternate between two streams
  uint32_t grid = 2048;         // blocks of a typical kernel
  int64_t drift_permille = 0;   // kernels get slower over the run
};

enum class Read : uint8_t { kColdFile, kMapping, kRemote };

struct LoaderSpec {
  bool on = true;
  int workers = 3;  // 0: inside next()
  int prefetch = 2;
  bool pin = true;
  bool persistent = true;
  int active_workers = 0;     // iterable data sets: workers with a shard; 0: all
  int batches_per_epoch = 0;  // 0: one epoch
  int samples = 32;
  Ns read_ns = 0;  // per batch, blocked
  Read read = Read::kColdFile;
  int64_t storage_streams = 0;  // reads at full speed at a time; 0: any number
  Ns cpu_ns = 0;                // per batch
  Ns gil_ns = 0;                // per batch, waiting for another thread of the worker
  Ns collate_ns = 0;
  Ns pickle_ns = 0;           // in the worker's feeder thread
  Ns unpickle_ns = 40000;     // main thread or pin thread
  Ns pipe_ns = 60000;         // worker to main process
  Ns pin_ns = 0;              // copy to pinned memory
  Ns pin_allocate_ns = 0;     // cudaHostAlloc in the pin thread, per batch
  Ns hand_out_ns = 90000;     // next() when the batch is ready
  int64_t cv_permille = 100;  // of a batch's service time
  int slow_every = 0;         // every n-th batch …
  int slow_factor = 1;        // … takes so many times longer
  Ns worker_start_ns = 0;     // per worker: imports, unpickling the data set
  Ns create_ns = 2000000;     // per worker, on the main thread
};

enum class CopyPath : uint8_t { kNoCopy, kPinnedAsync, kPinnedBlocking, kPageable, kPrefetched };

struct TransferSpec {
  CopyPath path = CopyPath::kPinnedAsync;
  uint64_t bytes = 2 << 20;         // per batch
  int small_copies = 0;             // extra blocking copies per batch …
  uint64_t small_bytes = 32 << 10;  // … of this size
};

enum class SyncKind : uint8_t { kNoSync, kItem, kDevice, kEvent };

struct SyncSpec {
  SyncKind kind = SyncKind::kNoSync;
  int per_layers = 0;   // one after every n layers of forward; 0: none
  bool at_end = false;  // one at the end of each step
  int every_steps = 1;
};

struct HostSpec {
  Ns python_ns = 120000;  // between steps
  Ns forward_ns = 0;      // Python work in the middle of forward
  Ns layers_ns = 0;       // Python work per step, spread over the layers
  Ns backward_ns = 0;     // in hooks, on the autograd thread
  Ns optimizer_ns = 0;    // inside optimizer.step()
  Ns logging_ns = 0;      // inside a logging range
  int logging_every = 1;
  Ns gc_ns = 0;
  int gc_every = 1;
  Ns starved_ns = 0;    // per step: the main thread wants a core and has none
  Ns gil_hold_ns = 0;   // a background thread holds the GIL so long …
  Ns gil_every_ns = 0;  // … every so often
};

struct AllocSpec {
  Ns device_ns = 0;          // per step in cudaMalloc and cudaFree
  bool empty_cache = false;  // cudaFree synchronises the device first
  int calls = 6;
  Ns pinned_ns = 0;  // per step in cudaHostAlloc on the main thread
};

struct CompileSpec {
  Ns jit_ns = 0;      // each time …
  int jit_every = 0;  // … every n steps (another shape); 0: never
  Ns module_ns = 0;   // lazy module loads
  int module_every = 0;
  Ns capture_ns = 0;  // graph instantiation
  int capture_every = 0;
};

struct CheckpointSpec {
  int every = 0;
  Ns total_ns = 0;
  bool in_background = false;  // device-to-host copy on a side stream, no waiting
};

struct CommSpec {
  int buckets = 3;
  Ns transfer_ns = 400000;  // per bucket
  int straggler_rank = -1;
  Ns straggler_host_ns = 0;                // per step on that rank, in Python
  Ns straggler_cpu_ns = 0;                 // per batch on that rank, in the loader (workers = 0)
  int64_t straggler_kernels_permille = 0;  // its kernels are slower
};

struct EvaluationSpec {
  int every = 0;  // steps
  int batches = 0;
};

// Where the recorder's windows lie, in steps; fractions of a step make partial steps.
struct WindowSpec {
  int begin_step = 0;
  int end_step = 0;
  bool mid_step = false;  // opens and closes in the middle of forward
};

struct LoopSpec {
  uint64_t seed = 1;
  int steps = 80;
  int warmup = 6;       // steps that also load modules and grow memory
  int micro_steps = 1;  // gradient accumulation
  bool gan = false;     // two models take turns within a step
  uint16_t ranks = 1;
  int64_t worker_cores = 14;
  int64_t storage_streams = 0;
  ModelSpec model;
  LoaderSpec loader;
  TransferSpec transfer;
  SyncSpec sync;
  HostSpec host;
  AllocSpec alloc;
  CompileSpec compile;
  CheckpointSpec checkpoint;
  CommSpec comm;
  EvaluationSpec evaluation;
  std::array<WindowSpec, 3> windows;  // end_step 0: unused
};

}  // namespace idlescope::simulate
