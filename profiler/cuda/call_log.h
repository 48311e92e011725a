// Where application threads leave their CUDA calls for the drain thread.
//
//   thread ──► its ThreadSlot ──► its CallChunk ──(committed)──► drain thread ──► free chunks
//
// In: one CallRecord per finished call, from the subscriber callback. Out: each record once
// (in order within a chunk of 1023; a thread's chunks may come in any order). `enter`,
// `next_record`, `commit`, `leave` run on application threads inside CUDA calls: no lock, no
// allocation unless all chunks are in use (then one mmap of 64 KiB), no CUDA call, no
// exception. Everything else is the drain thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/cuda/index_stack.h"

namespace idlescope::cuda {

struct CallRecord {
  int64_t begin_ns;
  int64_t end_ns;
  uint64_t stream_handle;
  uint64_t bytes;
  uint64_t object;
  uint32_t correlation_id;
  uint32_t context_id;
  int32_t result;
  uint16_t cbid;
  uint8_t domain;     // trace.proto HostCallDescriptor.Domain
  uint8_t copy_kind;  // trace.proto CopyKind
  uint8_t call_class;
  uint8_t reserved[7];
};
static_assert(sizeof(CallRecord) == 64);

struct CallChunk {
  static constexpr uint32_t kBytes = 64 * 1024;
  static constexpr uint32_t kRecords = kBytes / sizeof(CallRecord) - 1;

  std::atomic<uint32_t> committed;  // records that the owner has finished
  std::atomic<uint32_t> retired;    // 1: the owner is done with the chunk
  std::atomic<uint32_t> in_use;     // 0: on the free stack
  std::atomic<uint32_t> next_free;
  uint32_t thread_id;
  uint32_t window_id;
  uint32_t drained;  // drain thread only
  uint32_t padding[9];
  CallRecord records[kRecords];
};
static_assert(sizeof(CallChunk) == CallChunk::kBytes);

// A call that a thread is inside, from its enter callback to its exit callback. Kept here and not
// in the word that CUPTI offers for it (CUpti_CallbackData::correlationData): a call that was
// entered before an attach has no such word of this subscription, and writing to it could hit
// memory that is somebody else's by now.
struct EnteredCall {
  int64_t begin_ns;
  uint32_t correlation_id;
  uint16_t cbid;
  uint8_t domain;  // trace.proto HostCallDescriptor.Domain
  uint8_t call_class;
  bool wanted;  // false: not recorded in this window
};

// One per thread that makes CUDA calls; outlives the thread and is used again.
struct alignas(64) ThreadSlot {
  // A driver call inside a runtime call, a module load inside that: two or three deep.
  static constexpr uint32_t kMaxNested = 8;

  std::atomic<uint32_t> taken;
  std::atomic<uint32_t> inside;  // callbacks of this thread that are running now
  uint32_t thread_id = 0;
  uint32_t capture_depth = 0;  // nested begin/end-capture calls
  // Recorded calls that were entered and not left; a detach waits for them.
  std::atomic<uint32_t> open_calls;
  CallChunk* chunk = nullptr;
  // The calls that the thread is inside, outermost first; of this window only.
  EnteredCall entered[kMaxNested] = {};
  uint32_t depth = 0;
  uint32_t entered_window = 0;
  int64_t last_exit_ns = 0;         // of the last recorded call
  std::atomic<uint64_t> lost;       // no room
  std::atomic<uint64_t> callbacks;  // enter and exit, written by the owner only
  std::atomic<uint64_t> overtaken;  // launches during which another thread began one; likewise
  std::atomic<uint64_t> outside;    // callbacks while no window was open; likewise
};

class CallLog {
 public:
  static constexpr uint32_t kMaxThreads = 1024;
  static constexpr uint32_t kMaxChunks = 4096;  // 256 MiB; a bound, not a reservation

  // Once per process, before the first callback. False: no thread-exit hook is left in this
  // process (PTHREAD_KEYS_MAX); slots of ended threads are then not used again.
  bool init();

  // --- application threads
  // Marks the thread as inside a callback and returns its slot; null on our own threads.
  ThreadSlot* enter();
  static void leave(ThreadSlot* slot) { slot->inside.fetch_sub(1, std::memory_order_release); }
  // True: the threads beyond kMaxThreads share this slot, and nothing of them is recorded.
  bool is_shared(const ThreadSlot* slot) const { return slot == &slots_[0]; }
  // Room for one record of this window; null: lost (counted). Not visible until commit().
  CallRecord* next_record(ThreadSlot* slot, uint32_t window_id);
  static void commit(ThreadSlot* slot) {
    slot->chunk->committed.store(slot->chunk->committed.load(std::memory_order_relaxed) + 1,
                                 std::memory_order_release);
  }

  // --- drain thread
  // While true, the calling thread is ours: its calls are not recorded.
  static void mark_own_thread(bool own);
  // True when no thread is inside a callback. New ones must be turned away by the caller.
  bool quiet() const;
  // True when no recorded call is under way.
  bool no_open_calls() const;
  void forget_open_calls();
  // Maps chunks ahead of need.
  void keep_free(uint32_t chunks);
  // Calls take(const CallRecord&, uint32_t thread_id, uint32_t window_id) for each record
  // that is new, and recycles finished chunks.
  template <typename Take>
  uint64_t drain(Take take) {
    uint64_t count = 0;
    const uint32_t chunks = chunk_count_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < chunks; ++i) {
      CallChunk* chunk = chunks_[i].load(std::memory_order_acquire);
      if (chunk == nullptr || chunk->in_use.load(std::memory_order_acquire) == 0) continue;
      // Retired is read before committed: a retired chunk's count is final.
      const bool retired = chunk->retired.load(std::memory_order_acquire) != 0;
      const uint32_t committed = chunk->committed.load(std::memory_order_acquire);
      for (; chunk->drained < committed; ++chunk->drained, ++count) {
        take(chunk->records[chunk->drained], chunk->thread_id, chunk->window_id);
      }
      if (retired) recycle(i, chunk);
    }
    return count;
  }
  uint64_t take_lost();
  uint64_t callbacks() const;
  uint64_t overtaken() const;
  uint64_t outside() const;

  // After fork, in the child: its only thread is outside; chunks are left behind.
  void forget_after_fork();

 private:
  uint64_t sum(std::atomic<uint64_t> ThreadSlot::*counter) const;
  static void on_thread_exit(void* slot);
  ThreadSlot* acquire_slot();
  bool new_chunk(ThreadSlot* slot, uint32_t window_id);
  uint32_t map_chunk();
  void recycle(uint32_t index, CallChunk* chunk);

  ThreadSlot slots_[kMaxThreads];
  std::atomic<CallChunk*> chunks_[kMaxChunks];
  std::atomic<uint32_t> slot_count_{0};  // slots 1 … are used; threads beyond share slot 0
  std::atomic<uint32_t> chunk_count_{0};
  std::atomic<uint32_t> free_count_{0};
  IndexStack free_;
};

// The one of this process: static storage, no constructor to run, no destructor.
CallLog& call_log();

}  // namespace idlescope::cuda
