// The fake as a libcupti.so.13: CUPTI's symbols over the real clock, and a small "CUDA" for
// the driver program (launch_program.cpp). Loaded by the injection library end to end.
#include "tests/fake_cupti/fake_cupti.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Options of the fake come by environment, because the library under test loads it.
__attribute__((constructor)) void set_up() {
  const char* version = getenv("FAKE_CUPTI_VERSION");
  fake_cupti::reset(version == nullptr ? 130001 : static_cast<uint32_t>(atoi(version)), false);
  if (const char* error = getenv("FAKE_CUPTI_SUBSCRIBE_ERROR")) {
    fake_cupti::fail("Subscribe", static_cast<CUptiResult>(atoi(error)));
  }
  if (const char* holder = getenv("FAKE_CUPTI_HOLDER")) fake_cupti::hold_by_other_tool(holder);
}

}  // namespace

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  return fake_cupti::table().GetVersion(version);
}
EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  return fake_cupti::table().GetResultString(result, text);
}
EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  return fake_cupti::table().GetTimestamp(timestamp);
}
EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* handle,
                                           CUpti_CallbackFunc callback, void* user) {
  return fake_cupti::table().Subscribe(handle, callback, user);
}
EXPORT CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* handle,
                                              CUpti_CallbackFunc callback, void* user,
                                              CUpti_SubscriberParams* params) {
  return fake_cupti::table().Subscribe_v2(handle, callback, user, params);
}
EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  return fake_cupti::table().Unsubscribe(handle);
}
EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
                                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return fake_cupti::table().EnableCallback(on, handle, domain, id);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  return fake_cupti::table().ActivityRegisterCallbacks(request, complete);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  return fake_cupti::table().ActivityEnable(kind);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  return fake_cupti::table().ActivityDisable(kind);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  return fake_cupti::table().ActivityFlushAll(flag);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                       CUpti_Activity** record) {
  return fake_cupti::table().ActivityGetNextRecord(buffer, valid, record);
}
EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                              size_t* count) {
  return fake_cupti::table().ActivityGetNumDroppedRecords(context, stream, count);
}
EXPORT CUptiResult CUPTIAPI cuptiFinalize() { return fake_cupti::table().Finalize(); }
EXPORT CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  return fake_cupti::table().ActivityRegisterTimestampCallback(callback);
}
EXPORT CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return fake_cupti::table().SetThreadIdType(type);
}

EXPORT void fake_launch(const char* name, long duration_ns, unsigned long stream) {
  fake_cupti::launch({.name = name, .duration_ns = duration_ns, .stream = stream});
}
EXPORT void fake_copy(unsigned long bytes, int kind, unsigned long stream) {
  fake_cupti::copy({.duration_ns = 20000, .stream = stream, .bytes = bytes, .copy_kind = kind});
}
EXPORT void fake_memset(unsigned long bytes, unsigned long stream) {
  fake_cupti::set_memory({.stream = stream, .bytes = bytes});
}
EXPORT void fake_synchronize(unsigned long stream) { fake_cupti::synchronize_stream(stream); }
EXPORT void fake_capture(int begins, unsigned long stream) {
  if (begins != 0) {
    fake_cupti::begin_capture(stream);
  } else {
    fake_cupti::end_capture(stream);
  }
}
EXPORT int fake_attached() { return fake_cupti::attached() ? 1 : 0; }
EXPORT unsigned long fake_kernels_traced() { return fake_cupti::kernels_traced(); }
EXPORT unsigned long fake_finalized() { return fake_cupti::calls("Finalize"); }
EXPORT void fake_set_call_ns(long duration_ns) { fake_cupti::set_call_ns(duration_ns); }
EXPORT void fake_release_holder() { fake_cupti::hold_by_other_tool(""); }
