// Copies between host and device, and waiting for the device.
#include "analysis/simulate/rank_loop.h"

namespace idlescope::simulate {

OpSpec RankLoop::host_copy(trace::CopyKind kind, uint64_t bytes, bool pageable,
                           uint16_t stream) const {
  const Machine& m = b_->program().machine;
  OpSpec op;
  op.kind = trace::OP_MEMCPY;
  op.copy_kind = kind;
  trace::MemoryKind host = pageable ? trace::MEMORY_PAGEABLE : trace::MEMORY_PINNED;
  op.src = kind == trace::COPY_H2D ? host : trace::MEMORY_DEVICE;
  op.dst = kind == trace::COPY_H2D ? trace::MEMORY_DEVICE : host;
  op.rank = rank_;
  op.stream = stream;
  op.bytes = bytes;
  op.duration_ns = copy_ns(bytes, pageable ? m.pageable_mb_s : m.pinned_mb_s, m.copy_setup_ns);
  return op;
}

// loss.item(): a scalar to the host, then a stream synchronisation (ATen Copy.cu).
void RankLoop::item() {
  OpSpec op = host_copy(trace::COPY_D2H, 4, true, kComputeStream);
  op.exposed_leaf = report::SYNC_SCALAR;
  b_->run(main_, 5000, report::LAUNCH_LEAF);
  b_->blocking_copy(main_, op, true, report::SYNC_SCALAR);
}

void RankLoop::synchronise(SyncKind kind) {
  switch (kind) {
    case SyncKind::kNoSync:
      break;
    case SyncKind::kItem:
      item();
      break;
    case SyncKind::kDevice:
      b_->device_sync(main_, rank_, trace::CALL_DEVICE_SYNC, "cudaDeviceSynchronize", 0, 0,
                      report::SYNC_EXPLICIT);
      break;
    case SyncKind::kEvent:
      b_->event_sync(main_, b_->last_op(rank_, kComputeStream), report::SYNC_EVENT);
      break;
  }
}

// Batch to the device. Returns the op that forward has to wait for on another stream.
uint32_t RankLoop::transfer() {
  const TransferSpec& t = spec_.transfer;
  for (int i = 0; i < t.small_copies; ++i) {
    OpSpec op = host_copy(trace::COPY_H2D, t.small_bytes, false, kComputeStream);
    models_[0]->dispatch(main_, 5000);
    b_->blocking_copy(main_, op, false, report::XFER_SMALL);
  }
  switch (t.path) {
    case CopyPath::kNoCopy:
      return kNone;
    case CopyPath::kPinnedAsync:
      models_[0]->dispatch(main_, 6000);
      b_->copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kComputeStream), false,
               report::LAUNCH_LEAF);
      return kNone;
    case CopyPath::kPinnedBlocking:
      models_[0]->dispatch(main_, 6000);
      b_->blocking_copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kComputeStream), false,
                        report::XFER_SYNC);
      return kNone;
    case CopyPath::kPageable:
      models_[0]->dispatch(main_, 6000);
      b_->blocking_copy(main_, host_copy(trace::COPY_H2D, t.bytes, true, kComputeStream), true,
                        report::XFER_PAGEABLE);
      return kNone;
    case CopyPath::kPrefetched:
      models_[0]->dispatch(main_, 8000);
      return b_->copy(main_, host_copy(trace::COPY_H2D, t.bytes, false, kCopyStream), false,
                      report::LAUNCH_LEAF);
  }
  return kNone;
}

}  // namespace idlescope::simulate
