#include "analysis/diagnose/call_leaf.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace idlescope::diagnose {
namespace {

constexpr Ns kLongCall = 1'000'000;  // amendment A1.10
// A sync this soon after a copy on the same thread waits for that copy.
constexpr Ns kCopyThenSync = 100'000;

bool pageable(const read::OpDescriptor& descriptor) {
  return descriptor.src_kind == trace::MEMORY_PAGEABLE ||
         descriptor.dst_kind == trace::MEMORY_PAGEABLE;
}

}  // namespace

CallLeaf::CallLeaf(const model::Model& model, const model::DeviceTimeline& device,
                   const Constants& constants)
    : process_(model.process_of(device)),
      owner_(model.processes[device.process]),
      constants_(constants) {
  std::unordered_set<uint32_t> names;
  for (uint32_t i = 0; i < process_.ops.size(); ++i) {
    const read::Op& op = process_.ops[i];
    if (op.call == kNone) continue;
    const read::OpDescriptor& descriptor = process_.op_descriptors[op.descriptor];
    if (descriptor.kind == trace::OP_MEMCPY) copy_ops_.push_back({op.call, i});
    if (descriptor.kind == trace::OP_KERNEL && names.insert(descriptor.name).second) {
      first_uses_.push_back(op.call);
    }
  }
  std::sort(copy_ops_.begin(), copy_ops_.end());
  std::sort(first_uses_.begin(), first_uses_.end());
  find_small_copies();
}

void CallLeaf::find_small_copies() {
  struct Last {
    uint32_t call = kNone;  // the small copy handed out last on its thread, if nothing came since
    bool follows = false;   // right behind a blocking one
    bool blocking = false;  // it, or a sync behind it, waited
    bool listed = false;
    uint32_t before = kNone;  // the one it follows, not listed yet
  };
  std::unordered_map<uint32_t, Last> threads;
  for (const auto& [call, op] : copy_ops_) threads[thread_of(call)] = {};
  if (threads.empty()) return;
  const auto confirm = [&](Last& last) {
    last.blocking = true;
    if (!last.follows || last.listed) return;
    if (last.before != kNone) small_copies_.push_back({last.before, false});
    small_copies_.push_back({last.call, true});
    last.listed = true;
  };
  for (uint32_t i = 0; i < process_.calls.size(); ++i) {
    const read::Call& call = process_.calls[i];
    if (call.parent != kNone) continue;
    const auto it = threads.find(thread_of(i));
    if (it == threads.end()) continue;
    Last& last = it->second;
    const trace::CallClass what = call_class(i);
    if (what == trace::CALL_STREAM_SYNC || what == trace::CALL_DEVICE_SYNC) {
      const bool behind =
          last.call != kNone && call.begin_ns < process_.calls[last.call].end_ns + kCopyThenSync;
      if (behind) confirm(last);
      continue;
    }
    if (!model::hands_out_work(what)) continue;
    trace::CopyKind kind{};
    const uint64_t bytes = what == trace::CALL_MEMCPY ? copy_bytes(i, kind) : 0;
    if (bytes == 0 || bytes > kSmallCopyBytes || kind == trace::COPY_D2D) {
      last = {};
      continue;
    }
    Last next;
    next.call = i;
    next.follows =
        last.blocking && call.begin_ns < process_.calls[last.call].end_ns + constants_.burst_ns;
    next.before = next.follows && !last.listed ? last.call : kNone;
    last = next;
    if (waits(i)) confirm(last);
  }
  std::sort(small_copies_.begin(), small_copies_.end());
}

bool CallLeaf::in_small_copies(uint32_t call) const {
  const auto it =
      std::lower_bound(small_copies_.begin(), small_copies_.end(), std::make_pair(call, false));
  return it != small_copies_.end() && it->first == call;
}

bool CallLeaf::follows_small_copy(uint32_t call) const {
  return std::binary_search(small_copies_.begin(), small_copies_.end(), std::make_pair(call, true));
}

// Size and direction of a copy call: its op's, else the call's own record.
uint64_t CallLeaf::copy_bytes(uint32_t call, trace::CopyKind& kind) const {
  const read::Op* op = op_of_copy(call);
  const read::CallDescriptor& descriptor =
      process_.call_descriptors[process_.calls[call].descriptor];
  kind = op != nullptr ? process_.op_descriptors[op->descriptor].copy_kind : descriptor.copy_kind;
  return op != nullptr ? process_.op_descriptors[op->descriptor].bytes : descriptor.bytes;
}

const read::Op* CallLeaf::op_of_copy(uint32_t call) const {
  const auto it = std::lower_bound(copy_ops_.begin(), copy_ops_.end(), std::make_pair(call, 0u));
  return it != copy_ops_.end() && it->first == call ? &process_.ops[it->second] : nullptr;
}

bool CallLeaf::sends_input(uint32_t call) const {
  if (call_class(call) != trace::CALL_MEMCPY) return false;
  trace::CopyKind kind{};
  const uint64_t bytes = copy_bytes(call, kind);
  return kind == trace::COPY_H2D && bytes > kSyncCopyBytes;
}

bool CallLeaf::first_use(uint32_t call) const {
  return std::binary_search(first_uses_.begin(), first_uses_.end(), call);
}

bool CallLeaf::waits(uint32_t call) const {
  const read::Call& c = process_.calls[call];
  switch (call_class(call)) {
    case trace::CALL_STREAM_SYNC:
    case trace::CALL_DEVICE_SYNC:
    case trace::CALL_EVENT_SYNC:
    case trace::CALL_FREE_DEVICE:
    case trace::CALL_FREE_PINNED:
      return true;
    case trace::CALL_MEMCPY: {
      const read::Op* op = op_of_copy(call);
      if (op == nullptr) return c.end_ns - c.begin_ns > 100'000;
      if (op->end_ns <= c.end_ns) return true;
      // Staging returns a little before the device has read the last chunk.
      const read::OpDescriptor& descriptor = process_.op_descriptors[op->descriptor];
      // "… to pageable host memory, the function will return only once the copy has
      // completed" (CUDA, API synchronization behavior): a later end is the device's clock.
      if (pageable(descriptor) && descriptor.copy_kind == trace::COPY_D2H) return true;
      return pageable(descriptor) && op->begin_ns < c.end_ns && descriptor.bytes > (64u << 10);
    }
    default:
      return false;
  }
}

uint32_t CallLeaf::thread_of(uint32_t call) const {
  return process_.call_descriptors[process_.calls[call].descriptor].thread_id;
}

report::Leaf CallLeaf::transfer_leaf(const read::Op* op, uint64_t bytes) const {
  if (op == nullptr) return report::XFER_OTHER;
  const read::OpDescriptor& descriptor = process_.op_descriptors[op->descriptor];
  if (pageable(descriptor)) return report::XFER_PAGEABLE;
  const bool pinned =
      descriptor.src_kind == trace::MEMORY_PINNED || descriptor.dst_kind == trace::MEMORY_PINNED;
  if (pinned) return report::XFER_SYNC;
  const bool to_host = descriptor.copy_kind == trace::COPY_D2H;
  const double best = constants_.pinned_bytes_per_ns[to_host];
  const double duration = static_cast<double>(op->end_ns - op->begin_ns);
  if (best > 0 && duration > 0) {
    if (static_cast<double>(bytes) / best < 0.5 * duration) return report::XFER_SMALL;
    if (static_cast<double>(bytes) / duration < 0.6 * best) return report::XFER_SLOW;
  }
  return report::XFER_OTHER;
}

// Leaf of waiting for this copy: small ones are synchronisations (amendment A1.11).
report::Leaf CallLeaf::leaf_of_copy(uint32_t call) const {
  trace::CopyKind kind{};
  const uint64_t bytes = copy_bytes(call, kind);
  if (bytes != 0 && bytes <= kSyncCopyBytes) {
    return kind == trace::COPY_D2H && bytes <= kScalarBytes ? report::SYNC_SCALAR
                                                            : report::SYNC_IMPLICIT;
  }
  if (in_small_copies(call)) return report::XFER_SMALL;
  return transfer_leaf(op_of_copy(call), bytes);
}

report::Leaf CallLeaf::copy_leaf(uint32_t call) const {
  // Of a small blocking copy often the sync behind it waits, not the call itself.
  return waits(call) || in_small_copies(call) ? leaf_of_copy(call) : report::LAUNCH_LEAF;
}

// A stream sync right after a copy on the same thread is that copy's: PyTorch ends every
// copy without non_blocking in one (Copy.cu, memcpy_and_sync).
report::Leaf CallLeaf::sync_leaf(uint32_t call) const {
  const read::Call& sync = process_.calls[call];
  if (call_class(call) == trace::CALL_EVENT_SYNC) return report::SYNC_EVENT;
  const uint32_t thread = thread_of(call);
  for (uint32_t i = call; i-- > 0;) {
    const read::Call& before = process_.calls[i];
    if (thread_of(i) != thread || before.end_ns + kCopyThenSync < sync.begin_ns) break;
    if (before.parent != kNone || !model::hands_out_work(call_class(i))) continue;
    if (call_class(i) != trace::CALL_MEMCPY) break;
    trace::CopyKind kind{};
    if (copy_bytes(i, kind) == 0 || kind == trace::COPY_D2D) break;
    return leaf_of_copy(i);
  }
  return report::SYNC_EXPLICIT;
}

// HTA models this lock of the runtime: a launch takes long because another thread is in an
// allocation call.
bool CallLeaf::alloc_elsewhere(uint32_t call) const {
  const read::Call& c = process_.calls[call];
  const uint32_t own = process_.call_descriptors[c.descriptor].thread_id;
  for (const model::ThreadTimeline& thread : owner_.threads.threads) {
    if (thread.thread_id == own || thread.segments.empty()) continue;
    for (size_t i = thread.last_before(c.end_ns); i != model::ThreadTimeline::npos; --i) {
      const model::Segment& segment = thread.segments[i];
      if (segment.end_ns <= c.begin_ns) break;
      if (segment.source == model::Source::kCall) {
        switch (call_class(segment.ref)) {
          case trace::CALL_ALLOC_DEVICE:
          case trace::CALL_FREE_DEVICE:
          case trace::CALL_ALLOC_PINNED:
          case trace::CALL_FREE_PINNED: {
            const Ns overlap =
                std::min(segment.end_ns, c.end_ns) - std::max(segment.begin_ns, c.begin_ns);
            if (2 * overlap >= c.end_ns - c.begin_ns) return true;
            break;
          }
          default:
            break;
        }
      }
      if (i == 0) break;
    }
  }
  return false;
}

report::Leaf CallLeaf::leaf(uint32_t call, Ns waited_ns) const {
  const read::Call& c = process_.calls[call];
  const Ns length = c.end_ns - c.begin_ns;
  const bool device_idle = 2 * waited_ns >= length;
  switch (call_class(call)) {
    case trace::CALL_LAUNCH:
    case trace::CALL_MEMSET:
    case trace::CALL_GRAPH_LAUNCH:
    case trace::CALL_MEMCPY: {
      const bool copy = call_class(call) == trace::CALL_MEMCPY;
      if (!copy && length > kLongCall && device_idle && first_use(call)) {
        return report::COMPILE_MODULE;
      }
      const bool long_call = length > std::max<Ns>(50'000, 5 * constants_.launch_interval_ns);
      if (long_call && !(copy && waits(call)) && alloc_elsewhere(call)) return report::ALLOC_LOCK;
      return copy ? copy_leaf(call) : report::LAUNCH_LEAF;
    }
    case trace::CALL_STREAM_SYNC:
    case trace::CALL_DEVICE_SYNC:
    case trace::CALL_EVENT_SYNC:
      return sync_leaf(call);
    case trace::CALL_ALLOC_DEVICE:
    case trace::CALL_FREE_DEVICE:
      return report::ALLOC_DEVICE;
    case trace::CALL_ALLOC_PINNED:
    case trace::CALL_FREE_PINNED:
      return report::ALLOC_PINNED;
    case trace::CALL_MODULE_LOAD:
      return report::COMPILE_MODULE;
    case trace::CALL_GRAPH_INSTANTIATE:
    case trace::CALL_CAPTURE_BEGIN:
    case trace::CALL_CAPTURE_END:
      return report::COMPILE_CAPTURE;
    default:
      return length > kLongCall && device_idle ? report::COMPILE_MODULE : report::LEAF_UNSPECIFIED;
  }
}

report::Leaf CallLeaf::leaf(const read::Overhead& overhead) const {
  switch (overhead.kind) {
    case trace::OVERHEAD_DRIVER_COMPILER:
      return report::COMPILE_JIT;
    case trace::OVERHEAD_LAZY_FUNCTION_LOADING:
    case trace::OVERHEAD_MODULE_LOADING:
      return report::COMPILE_MODULE;
    case trace::OVERHEAD_COMMAND_BUFFER_FULL:
    case trace::OVERHEAD_UNKNOWN:
      return report::LEAF_UNSPECIFIED;
    default:
      return report::PROFILER;
  }
}

report::Leaf CallLeaf::leaf(const read::HostEvent& event) const {
  switch (event.kind) {
    case trace::EVENT_LOADER_CREATE:
    case trace::EVENT_LOADER_RESET:
    case trace::EVENT_LOADER_END:
    case trace::EVENT_LOADER_SHUTDOWN:
      return report::DATA_STARTUP;
    case trace::EVENT_GC:
      return report::HOST_GC;
    case trace::EVENT_CHECKPOINT:
      return report::CKPT;
    case trace::EVENT_CAPTURE:
      return report::COMPILE_CAPTURE;
    case trace::EVENT_RANGE:
      if (event.b == trace::RANGE_COMPILE) return report::COMPILE_JIT;
      if (event.b == trace::RANGE_COMMUNICATION) return report::COMM_HOST;
      return report::LEAF_UNSPECIFIED;
    default:
      return report::LEAF_UNSPECIFIED;
  }
}

report::Leaf CallLeaf::exposed_copy(const read::Op& op) const {
  if (op.call == kNone) return report::BUSY_COPY_EXPOSED;
  const uint64_t bytes = process_.op_descriptors[op.descriptor].bytes;
  if (bytes != 0 && bytes <= kSyncCopyBytes && waits(op.call)) return copy_leaf(op.call);
  return report::BUSY_COPY_EXPOSED;
}

}  // namespace idlescope::diagnose
