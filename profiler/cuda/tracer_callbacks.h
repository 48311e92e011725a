// The functions that CUPTI calls, on whatever thread it likes.
//
// In: CUPTI's callback data. Out: CallRecords in the call log, buffers in ActivityBuffers,
// sightings of graphs and captures. They run inside CUDA calls of the application: no lock,
// no allocation on the steady path, no CUDA or CUPTI call, no exception.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace idlescope::cuda {

// Calls that are entered from now on belong to this window …
void open_call_window(uint32_t window_id);
// … and are recorded if they end after this: before it no device record can belong to them.
void keep_calls_from(int64_t end_ns);
// Calls that were entered already are still recorded when they end; new ones are not.
void refuse_new_calls();
// Nothing is recorded any more.
void close_call_window();
// --detail full: also the driver call inside a runtime call of the same class.
void record_both_domains(bool on);

void CUPTIAPI on_cuda_call(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                           const void* data);
void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
void CUPTIAPI on_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                  size_t valid_size);
uint64_t CUPTIAPI host_timestamp();

// Buffers that came back and were not ours.
uint64_t foreign_buffers();

}  // namespace idlescope::cuda
