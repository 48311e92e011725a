#include "profiler/cuda/record_writer.h"

#include <cstring>

#include "profiler/cuda/call_table.h"
#include "profiler/cuda/clock.h"
#include "profiler/emit/device_packets.h"

namespace idlescope::cuda {

RecordWriter::RecordWriter(emit::PacketSink sink, emit::NameSource names, const DriverApi* driver)
    : sink_(sink), driver_(driver), names_(names), name_source_(names), batch_(sink) {
  memset(call_names_, 0, sizeof call_names_);
}

void RecordWriter::start_window(uint32_t window_id, uint32_t cupti_version) {
  batch_.start_window(window_id);
  window_id_ = window_id;
  cupti_version_ = cupti_version;
  ops_ = 0;
  calls_ = 0;
  joined_ = 0;
  bad_buffers_ = 0;
  lost_before_ = batch_.lost();
  memset(incomplete_, 0, sizeof incomplete_);
  // Contexts and streams come and go between windows, and handles are used again.
  streams_.forget();
  contexts_.forget();
  if (join_.resize(kJoinSlots)) {
    memset(static_cast<void*>(join_.data()), 0, kJoinSlots * sizeof(JoinSlot));
  }
}

uint32_t RecordWriter::call_name_id(const CallRecord& record) {
  const bool runtime = record.domain == emit::kDomainRuntime;
  if (record.cbid >= 1024) return 0;
  uint32_t& id = call_names_[runtime ? 0 : 1][record.cbid];
  if (id == 0) {
    const CallFunction* function =
        find_call(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, record.cbid);
    if (function == nullptr) return 0;
    char name[128];
    call_name(*function, name, sizeof name);
    id = name_source_(name, strlen(name));
  }
  return id;
}

void RecordWriter::take_call(const CallRecord& record, uint32_t thread_id, uint32_t window_id) {
  if (window_id != window_id_) return;  // left over from a window that was closed
  emit::HostCall call;
  memset(static_cast<void*>(&call), 0, sizeof call);
  call.key.stream_handle = record.stream_handle;
  call.key.bytes = record.bytes;
  call.key.object = record.object;
  call.key.name_id = call_name_id(record);
  call.key.thread_id = thread_id;
  call.key.context_id = record.context_id;
  call.key.call_class = record.call_class;
  call.key.domain = record.domain;
  call.key.copy_kind = record.copy_kind;
  call.begin_ns = record.begin_ns;
  call.end_ns = record.end_ns;
  call.correlation_id = record.correlation_id;
  call.result = record.result;
  if (batch_.add_call(call)) {
    ++calls_;
    ++total_calls_;
  }
  if (join_.size() != 0 && record.correlation_id != 0) {
    // The driver's call inside a runtime call comes first; the outer one then replaces it.
    join_[record.correlation_id & (kJoinSlots - 1)] = {record.stream_handle, record.correlation_id,
                                                       1};
  }
}

void RecordWriter::take_buffer(const CuptiApi& api, const ActivityBuffers::Filled& buffer) {
  CUpti_Activity* record = nullptr;
  DecodedRecord decoded;
  for (;;) {
    const CUptiResult result = api.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record);
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (result != CUPTI_SUCCESS || record == nullptr) {
      if (buffer.valid_bytes != 0) ++bad_buffers_;
      return;
    }
    switch (decode_record(record, cupti_version_, &decoded)) {
      case Decoded::kOp:
        take_op(decoded);
        break;
      case Decoded::kOverhead:
        batch_.add_overhead(decoded.overhead);
        break;
      case Decoded::kIncomplete:
        ++incomplete_[decoded.trace_kind % kKinds];
        break;
      case Decoded::kOther:
        break;
    }
  }
}

void RecordWriter::take_op(const DecodedRecord& decoded) {
  emit::GpuOp op = decoded.op;
  op.key.name_id = names_.id(decoded.name);
  note_place(op);
  if (batch_.add_op(op)) {
    ++ops_;
    ++total_ops_;
  }
}

void RecordWriter::note_place(const emit::GpuOp& op) {
  const uint32_t device = op.key.device_id;
  if (device < kMaxDevices && !device_written_[device]) {
    device_written_[device] = true;
    emit::DeviceFact fact;
    if (driver_ == nullptr || !driver_->device(device, &fact)) {
      memset(static_cast<void*>(&fact), 0, sizeof fact);
      fact.device_id = device;
    }
    emit::write_device(sink_, fact);
  }
  contexts_.id({op.key.context_id, device, 0, 0});
  if (contexts_.has_fresh()) {
    contexts_.mark_written();
    emit::write_context(sink_, op.key.context_id, device, 0);
  }
  if (join_.size() == 0) return;
  const JoinSlot& call = join_[op.correlation_id & (kJoinSlots - 1)];
  if (call.seen == 0 || call.correlation_id != op.correlation_id) return;
  ++joined_;
  // Handles 0, 1 and 2 are the null, legacy and per-thread streams; nodes of a graph run on
  // streams that no call names.
  if (op.key.graph_id != 0) return;
  streams_.id({call.stream_handle, op.key.context_id, op.key.stream_id});
  if (!streams_.has_fresh()) return;
  streams_.mark_written();
  emit::write_stream(sink_, op.key.context_id, op.key.stream_id, call.stream_handle, op.begin_ns);
  if (call.stream_handle == 0 && op.key.kind == emit::kOpKernel) {
    contexts_.id({op.key.context_id, device, op.key.stream_id, 0});
    contexts_.mark_written();
    emit::write_context(sink_, op.key.context_id, device, op.key.stream_id);
  }
}

void RecordWriter::write_losses(uint64_t dropped, uint64_t lost_calls, uint64_t lost_buffers) {
  emit::write_loss(sink_, emit::kLossCuptiDropped, emit::kKindUnknown, window_id_, dropped,
                   "CUPTI had no buffer for these records");
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    emit::write_loss(sink_, emit::kLossIncomplete, kind, window_id_, incomplete_[kind],
                     "still running when the window ended");
  }
  emit::write_loss(sink_, emit::kLossBuffer, emit::kKindUnknown, window_id_,
                   lost_buffers + bad_buffers_, "whole activity buffers, each up to 256 KiB");
  emit::write_loss(sink_, emit::kLossHostLogFull, emit::kKindUnknown, window_id_, lost_calls,
                   "no room in the call log");
  emit::write_loss(sink_, emit::kLossFile, emit::kKindUnknown, window_id_,
                   batch_.lost() - lost_before_, "the file did not take these records");
  lost_before_ = batch_.lost();
}

}  // namespace idlescope::cuda
