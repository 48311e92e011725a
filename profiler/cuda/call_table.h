// Which CUDA functions are recorded, and how a call's parameters become a CallRecord.
//
// In: CUPTI's callback domain, id and parameter struct (generated_cuda*_meta.h; the structs
// of a function do not change between CUPTI 12 and 13, new signatures get new ids). Out: call
// class, name, stream, bytes, copy kind, object. `decode_call` runs inside CUDA calls on
// application threads: it reads the parameters and allocates nothing.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "profiler/cuda/call_log.h"

namespace idlescope::cuda {

struct CallFunction {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
  uint8_t call_class;  // trace.proto CallClass
  const char* name;    // as CUPTI spells it: "cudaLaunchKernel_v7000"
};

// All recorded functions.
const CallFunction* call_functions(uint32_t* count);

// Null: not one of ours.
const CallFunction* find_call(CUpti_CallbackDomain domain, CUpti_CallbackId id);

// Fills stream_handle, bytes, object, copy_kind and call_class. Call it at API exit: output
// parameters (a new graph exec) are valid then. `failed`: the call returned an error, its
// output parameters are not read.
void decode_call(const CallFunction& function, const void* params, bool failed, CallRecord* record);

// Writes the name without the runtime's version suffix: "cudaLaunchKernel". `size` ≥ 64.
void call_name(const CallFunction& function, char* out, uint32_t size);

}  // namespace idlescope::cuda
