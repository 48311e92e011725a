// NVTX ranges and marks of the job (its own, torch.cuda.nvtx, libraries) as host events.
//
// In: NVTX's callback tables, which it hands over at its first call (NVTX 3,
// nvtxDetail/nvtxTypes.h). Out: EVENT_RANGE (category NVTX) and EVENT_MARK. Application
// threads; no allocation, no exception. A name is looked up under a lock once per thread and
// text (small cache by pointer and content).
#pragma once

namespace idlescope::host {

// `get_export_table` is NVTX's function. Non-zero: we took the callbacks.
int initialize_nvtx(void* get_export_table);

}  // namespace idlescope::host
