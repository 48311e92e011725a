#include "tests/fake_cupti/world.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace fake_cupti {

std::recursive_mutex mutex;

std::unique_ptr<World>& the_world() {
  static auto* only = new std::unique_ptr<World>(std::make_unique<World>());
  return *only;
}

int64_t clock_ns() {
  if (world->virtual_clock) return world->clock_ns;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void spend(int64_t duration_ns) {
  if (world->virtual_clock) {
    world->clock_ns += duration_ns;
    return;
  }
  const int64_t until_ns = clock_ns() + duration_ns;
  while (clock_ns() < until_ns) {
  }
}

CUptiResult enter(const char* function) {
  ++world->calls[function];
  if (world->watcher) world->watcher(function);
  auto found = world->errors.find(function);
  if (found == world->errors.end() || found->second.count == 0) return CUPTI_SUCCESS;
  if (found->second.count > 0) --found->second.count;
  return found->second.result;
}

void settle() {
  const int64_t now = clock_ns();
  for (Buffer& buffer : world->buffers) {
    std::erase_if(buffer.pending, [&](const PendingRecord& record) {
      if (record.end_ns > now) return false;
      auto* kind = reinterpret_cast<CUpti_Activity*>(buffer.data + record.offset);
      const auto start = static_cast<uint64_t>(record.start_ns);
      const auto end = static_cast<uint64_t>(record.end_ns);
      const auto write = [&](auto* typed) {
        typed->start = start;
        typed->end = end;
      };
      switch (kind->kind) {
        case CUPTI_ACTIVITY_KIND_MEMCPY:
          write(reinterpret_cast<CUpti_ActivityMemcpy6*>(kind));
          break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
          write(reinterpret_cast<CUpti_ActivityMemset4*>(kind));
          break;
        case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
          write(reinterpret_cast<CUpti_ActivityGraphTrace2*>(kind));
          break;
        default:
          write(reinterpret_cast<CUpti_ActivityKernel10*>(kind));
          break;
      }
      return true;
    });
  }
}

namespace {

void deliver(Buffer& buffer) {
  world->complete(nullptr, 0, buffer.data, buffer.capacity, buffer.used);
}

}  // namespace

void deliver_ready(bool all, bool force) {
  settle();
  std::deque<Buffer> kept;
  for (size_t i = 0; i < world->buffers.size(); ++i) {
    Buffer& buffer = world->buffers[i];
    const bool filling = i + 1 == world->buffers.size();
    const bool ready = (buffer.pending.empty() || force) && (all || !filling);
    if (ready) {
      deliver(buffer);
    } else {
      kept.push_back(buffer);
    }
  }
  world->buffers = kept;
}

size_t record_bytes(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    default:
      return world->version < 130000 ? sizeof(CUpti_ActivityKernel9)
                                     : sizeof(CUpti_ActivityKernel10);
  }
}

namespace {

template <typename Record>
void append(Record record, size_t bytes, const PendingRecord& times) {
  if (!world->buffers.empty() &&
      world->buffers.back().used + bytes > world->buffers.back().capacity) {
    world->buffers.push_back({});
    deliver_ready(false, false);
    if (!world->buffers.empty() && world->buffers.back().data == nullptr) world->buffers.pop_back();
    world->buffers.push_back({});
  }
  if (world->buffers.empty() || world->buffers.back().data == nullptr) {
    if (world->buffers.empty()) world->buffers.push_back({});
    Buffer& fresh = world->buffers.back();
    size_t records = 0;
    if (world->request != nullptr && !world->no_buffers) {
      world->request(&fresh.data, &fresh.capacity, &records);
    }
    if (fresh.data == nullptr || fresh.capacity < bytes) {
      world->buffers.pop_back();
      ++world->dropped;
      return;
    }
  }
  Buffer& buffer = world->buffers.back();
  memcpy(buffer.data + buffer.used, &record, bytes);
  buffer.pending.push_back({buffer.used, times.start_ns, times.end_ns});
  buffer.used += bytes;
}

int64_t device_start(uint64_t stream, int64_t duration_ns, int64_t* end_ns) {
  int64_t& free_ns = world->stream_free_ns[stream];
  const int64_t start = std::max(free_ns, clock_ns() + 1000);
  free_ns = start + duration_ns;
  *end_ns = free_ns;
  return start;
}

const char* stable(const std::string& name) { return world->names.insert(name).first->c_str(); }

}  // namespace

void trace_kernel(const Op& op, uint32_t correlation, uint64_t node) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 0) return;
  ++world->kernels;
  CUpti_ActivityKernel10 k = {};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.contextId = 1;
  k.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  k.gridX = 128;
  k.gridY = k.gridZ = 1;
  k.blockX = 256;
  k.blockY = k.blockZ = 1;
  k.registersPerThread = 32;
  k.dynamicSharedMemory = 1024;
  k.correlationId = correlation;
  k.name = stable(op.name);
  k.graphId = op.graph_id;
  k.graphNodeId = node;
  append(k, world->version < 130000 ? sizeof(CUpti_ActivityKernel9) : sizeof k, {0, start, end});
}

void trace_copy(const Op& op, uint32_t correlation) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_MEMCPY) == 0) return;
  CUpti_ActivityMemcpy6 m = {};
  m.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  m.copyKind = op.copy_kind == 2   ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
               : op.copy_kind == 3 ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                                   : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  m.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  m.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  m.bytes = op.bytes;
  m.contextId = 1;
  m.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  m.correlationId = correlation;
  append(m, sizeof m, {0, start, end});
}

void trace_memset(const Op& op, uint32_t correlation) {
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns, &end);
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_MEMSET) == 0) return;
  CUpti_ActivityMemset4 m = {};
  m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  m.bytes = op.bytes;
  m.contextId = 1;
  m.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  m.correlationId = correlation;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  append(m, sizeof m, {0, start, end});
}

void trace_graph(const Op& op, uint32_t correlation) {
  if (world->kinds.count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == 0) {
    for (uint32_t i = 0; i < op.graph_nodes; ++i) trace_kernel(op, correlation, i + 1);
    return;
  }
  int64_t end = 0;
  const int64_t start = device_start(op.stream, op.duration_ns * op.graph_nodes, &end);
  CUpti_ActivityGraphTrace2 g = {};
  g.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  g.correlationId = correlation;
  g.contextId = 1;
  g.streamId = 7 + static_cast<uint32_t>(op.stream % 1000);
  g.graphId = op.graph_id;
  append(g, sizeof g, {0, start, end});
}

}  // namespace fake_cupti
