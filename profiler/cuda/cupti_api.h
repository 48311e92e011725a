// The functions of CUPTI that the recorder uses, as a table: THE seam for tests.
//
// In: a libcupti of major version 12 or 13 that the job brings or the machine has. Out: the
// table, filled once. Nothing in the recorder calls CUPTI but through a CuptiApi, so unit
// tests hand in a table of their own (tests/fake_cupti). Resolving only maps the library;
// it does not initialise CUPTI.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace idlescope::cuda {

struct CuptiApi {
  decltype(&cuptiGetVersion) GetVersion;
  decltype(&cuptiGetResultString) GetResultString;
  decltype(&cuptiGetTimestamp) GetTimestamp;
  decltype(&cuptiSubscribe) Subscribe;
  decltype(&cuptiUnsubscribe) Unsubscribe;
  decltype(&cuptiEnableCallback) EnableCallback;
  decltype(&cuptiActivityRegisterCallbacks) ActivityRegisterCallbacks;
  decltype(&cuptiActivityEnable) ActivityEnable;
  decltype(&cuptiActivityDisable) ActivityDisable;
  decltype(&cuptiActivityFlushAll) ActivityFlushAll;
  decltype(&cuptiActivityGetNextRecord) ActivityGetNextRecord;
  decltype(&cuptiActivityGetNumDroppedRecords) ActivityGetNumDroppedRecords;
  decltype(&cuptiFinalize) Finalize;
  // Optional; null in versions without it.
  decltype(&cuptiSubscribe_v2) Subscribe_v2;
  decltype(&cuptiActivityRegisterTimestampCallback) ActivityRegisterTimestampCallback;
  decltype(&cuptiSetThreadIdType) SetThreadIdType;
};

// How a search for libcupti ended.
struct CuptiSearch {
  bool found;
  uint32_t major;    // found: 13 for libcupti.so.13; 0: its name does not say
  char path[512];    // found: of the library; else: what was tried
  char detail[256];  // not found: why, English
};

// Takes a libcupti that the job has already mapped, else the one beside the job's libcudart,
// else what the loader finds, else the toolkit's. `wanted_major` (12, 13) is the CUDA version
// of the job's runtime, 0 if unknown. Calls dlopen: not from an application thread's hot path.
CuptiSearch load_cupti(uint32_t wanted_major, CuptiApi* api);

// The table that a test put in place of load_cupti; null: none.
void set_cupti_for_test(const CuptiApi* api);

// "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", or "CUptiResult 35" if the library cannot tell.
const char* result_text(const CuptiApi& api, CUptiResult result);

}  // namespace idlescope::cuda
