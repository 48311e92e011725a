#include "profiler/cuda/call_log.h"

#include <pthread.h>
#include <sys/mman.h>

#include "profiler/cuda/clock.h"

namespace idlescope::cuda {
namespace {

// initial-exec: reading it inside a CUDA call never allocates (a dynamic TLS block would be
// allocated at a thread's first touch).
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadSlot* this_slot = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool this_is_own = false;

constinit CallLog log_of_process;
pthread_key_t exit_key;
bool exit_key_valid = false;

}  // namespace

CallLog& call_log() { return log_of_process; }

bool CallLog::init() {
  if (!exit_key_valid && pthread_key_create != nullptr) {
    exit_key_valid = pthread_key_create(&exit_key, &on_thread_exit) == 0;
  }
  return exit_key_valid;
}

void CallLog::mark_own_thread(bool own) { this_is_own = own; }

ThreadSlot* CallLog::enter() {
  if (this_is_own) return nullptr;
  ThreadSlot* slot = this_slot;
  if (slot == nullptr) slot = acquire_slot();
  // Sequentially consistent with the detacher, which closes the window first and then looks
  // for threads inside (tracer.cpp).
  slot->inside.fetch_add(1, std::memory_order_seq_cst);
  return slot;
}

ThreadSlot* CallLog::acquire_slot() {
  ThreadSlot* found = nullptr;
  const uint32_t known = slot_count_.load(std::memory_order_acquire);
  for (uint32_t i = 1; i <= known && found == nullptr; ++i) {
    uint32_t expected = 0;
    if (slots_[i].taken.load(std::memory_order_relaxed) == 0 &&
        slots_[i].taken.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
      found = &slots_[i];
    }
  }
  while (found == nullptr) {
    uint32_t count = slot_count_.load(std::memory_order_relaxed);
    if (count + 1 >= kMaxThreads) {
      this_slot = &slots_[0];
      return this_slot;
    }
    if (slot_count_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) {
      uint32_t expected = 0;
      // Another thread may have found the fresh slot first.
      ThreadSlot& fresh = slots_[count + 1];
      if (fresh.taken.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
        found = &fresh;
      }
    }
  }
  found->thread_id = kernel_thread_id();
  found->capture_depth = 0;
  found->open_calls.store(0, std::memory_order_relaxed);
  found->depth = 0;
  found->entered_window = 0;
  found->chunk = nullptr;
  this_slot = found;
  if (exit_key_valid) pthread_setspecific(exit_key, found);
  return found;
}

void CallLog::on_thread_exit(void* data) {
  auto* slot = static_cast<ThreadSlot*>(data);
  if (slot->chunk != nullptr) {
    slot->chunk->retired.store(1, std::memory_order_release);
    slot->chunk = nullptr;
  }
  // Later destructors of this thread may still call CUDA: they then take a new slot.
  this_slot = nullptr;
  slot->taken.store(0, std::memory_order_release);
}

CallRecord* CallLog::next_record(ThreadSlot* slot, uint32_t window_id) {
  CallChunk* chunk = slot->chunk;
  if (chunk == nullptr || chunk->window_id != window_id ||
      chunk->committed.load(std::memory_order_relaxed) == CallChunk::kRecords) {
    if (is_shared(slot) || !new_chunk(slot, window_id)) {
      slot->lost.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    chunk = slot->chunk;
  }
  return &chunk->records[chunk->committed.load(std::memory_order_relaxed)];
}

bool CallLog::new_chunk(ThreadSlot* slot, uint32_t window_id) {
  if (slot->chunk != nullptr) {
    slot->chunk->retired.store(1, std::memory_order_release);
    slot->chunk = nullptr;
  }
  uint32_t index = free_.pop(
      [this](uint32_t i) { return &chunks_[i].load(std::memory_order_acquire)->next_free; });
  if (index != IndexStack::kNone) {
    free_count_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    index = map_chunk();
    if (index == IndexStack::kNone) return false;
  }
  CallChunk* chunk = chunks_[index].load(std::memory_order_acquire);
  chunk->thread_id = slot->thread_id;
  chunk->window_id = window_id;
  chunk->drained = 0;
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->retired.store(0, std::memory_order_relaxed);
  chunk->in_use.store(1, std::memory_order_release);
  slot->chunk = chunk;
  return true;
}

// A new chunk that belongs to the caller; kNone at the limit or without memory.
uint32_t CallLog::map_chunk() {
  uint32_t index = chunk_count_.load(std::memory_order_relaxed);
  if (index >= kMaxChunks) return IndexStack::kNone;
  void* memory =
      mmap(nullptr, CallChunk::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return IndexStack::kNone;
  auto* chunk = static_cast<CallChunk*>(memory);  // zero pages: a valid, unused chunk
  while (index < kMaxChunks) {
    CallChunk* expected = nullptr;
    if (chunks_[index].compare_exchange_strong(expected, chunk, std::memory_order_acq_rel)) {
      uint32_t count = chunk_count_.load(std::memory_order_relaxed);
      while (count < index + 1 &&
             !chunk_count_.compare_exchange_weak(count, index + 1, std::memory_order_acq_rel)) {
      }
      return index;
    }
    ++index;
  }
  munmap(memory, CallChunk::kBytes);
  return IndexStack::kNone;
}

void CallLog::recycle(uint32_t index, CallChunk* chunk) {
  chunk->in_use.store(0, std::memory_order_release);
  free_.push(index, &chunk->next_free);
  free_count_.fetch_add(1, std::memory_order_relaxed);
}

void CallLog::keep_free(uint32_t chunks) {
  while (free_count_.load(std::memory_order_relaxed) < chunks) {
    const uint32_t index = map_chunk();
    if (index == IndexStack::kNone) return;
    CallChunk* chunk = chunks_[index].load(std::memory_order_acquire);
    // Touch the pages here, not in the application's call.
    for (uint32_t i = 0; i < CallChunk::kRecords; i += 4096 / sizeof(CallRecord)) {
      chunk->records[i].begin_ns = 0;
    }
    recycle(index, chunk);
  }
}

bool CallLog::quiet() const {
  const uint32_t count = slot_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i <= count; ++i) {
    if (slots_[i].inside.load(std::memory_order_seq_cst) != 0) return false;
  }
  return true;
}

bool CallLog::no_open_calls() const {
  const uint32_t count = slot_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i <= count; ++i) {
    if (slots_[i].open_calls.load(std::memory_order_acquire) != 0) return false;
  }
  return true;
}

void CallLog::forget_open_calls() {
  for (ThreadSlot& slot : slots_) slot.open_calls.store(0, std::memory_order_relaxed);
}

uint64_t CallLog::take_lost() {
  uint64_t lost = 0;
  const uint32_t count = slot_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i <= count; ++i) {
    lost += slots_[i].lost.exchange(0, std::memory_order_relaxed);
  }
  return lost;
}

uint64_t CallLog::sum(std::atomic<uint64_t> ThreadSlot::*counter) const {
  uint64_t sum = 0;
  const uint32_t count = slot_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i <= count; ++i) {
    sum += (slots_[i].*counter).load(std::memory_order_relaxed);
  }
  return sum;
}

uint64_t CallLog::callbacks() const { return sum(&ThreadSlot::callbacks); }
uint64_t CallLog::overtaken() const { return sum(&ThreadSlot::overtaken); }
uint64_t CallLog::outside() const { return sum(&ThreadSlot::outside); }

void CallLog::forget_after_fork() {
  for (ThreadSlot& slot : slots_) slot.inside.store(0, std::memory_order_relaxed);
}

}  // namespace idlescope::cuda
