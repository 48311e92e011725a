#include "profiler/host/ranges.h"

#include <atomic>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/host_events.h"

namespace idlescope::host {
namespace {

struct OpenRange {
  int64_t begin_ns;
  uint32_t name;
  uint32_t category;
};

// Of one thread. Small: a library that is loaded late has little room for thread-local data.
struct RangeStack {
  int depth;  // may exceed kMaxOpenRanges
  uint32_t generation;
  OpenRange open[kMaxOpenRanges];
};
thread_local RangeStack stack;

// Ranges by id, for start and end on different threads. A slot is taken while its range is
// open; the id tells a late end from the slot's next user.
constexpr size_t kSharedRanges = 1024;
struct SharedRange {
  std::atomic<uint64_t> id;  // 0: free
  OpenRange range;
};
SharedRange shared[kSharedRanges];
std::atomic<uint64_t> next_shared_id{1};

void write_range(const OpenRange& range, int depth) {
  write_event({.kind = EventKind::kRange,
               .begin_ns = range.begin_ns,
               .end_ns = emit::monotonic_ns(),
               .a = range.name,
               .b = range.category,
               .c = depth});
}

OpenRange open_range(RangeCategory category, const char* name, size_t size) {
  const uint32_t id = emit::name_id(name, size);
  return {emit::monotonic_ns(), id, static_cast<uint32_t>(category)};
}

}  // namespace

int push_range(RangeCategory category, const char* name, size_t size) {
  const uint32_t generation = emit::file_generation();
  if (stack.generation != generation) {
    // A forked child: the ids of its parent's open ranges are not in its file.
    for (int i = 0; i < stack.depth && i < kMaxOpenRanges; ++i) stack.open[i].name = 0;
    stack.generation = generation;
  }
  if (stack.depth < kMaxOpenRanges) {
    stack.open[stack.depth] =
        emit::recording_possible() ? open_range(category, name, size) : OpenRange{0, 0, 0};
  }
  return stack.depth++;
}

int pop_range() {
  if (stack.depth == 0) return -1;
  const int depth = --stack.depth;
  if (depth < kMaxOpenRanges && stack.open[depth].name != 0 &&
      stack.generation == emit::file_generation()) {
    write_range(stack.open[depth], depth);
  }
  return depth;
}

void write_mark(const char* name, size_t size) {
  const uint32_t id = emit::name_id(name, size);
  const int64_t now_ns = emit::monotonic_ns();
  write_event({.kind = EventKind::kMark, .begin_ns = now_ns, .end_ns = now_ns, .a = id});
}

uint64_t start_range(RangeCategory category, const char* name, size_t size) {
  if (!emit::recording_possible()) return 0;
  const uint64_t id = next_shared_id.fetch_add(1, std::memory_order_relaxed);
  SharedRange& slot = shared[id % kSharedRanges];
  uint64_t free_slot = 0;
  // Taken by a range that was started 1024 ranges ago: this one is not recorded.
  if (!slot.id.compare_exchange_strong(free_slot, UINT64_MAX, std::memory_order_acquire)) return 0;
  slot.range = open_range(category, name, size);
  slot.id.store(id, std::memory_order_release);
  return id;
}

void end_range(uint64_t id) {
  if (id == 0) return;
  SharedRange& slot = shared[id % kSharedRanges];
  uint64_t expected = id;
  if (!slot.id.compare_exchange_strong(expected, UINT64_MAX, std::memory_order_acquire)) return;
  const OpenRange range = slot.range;
  slot.id.store(0, std::memory_order_release);
  write_range(range, 0);
}

}  // namespace idlescope::host
