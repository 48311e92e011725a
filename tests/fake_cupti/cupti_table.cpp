// The functions of CUPTI as the recorder calls them.
#include <cstdio>
#include <cstring>

#include "tests/fake_cupti/world.h"

namespace fake_cupti {
namespace {

CUptiResult CUPTIAPI get_version(uint32_t* version) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *version = world->version;
  return enter("GetVersion");
}
CUptiResult CUPTIAPI get_result_string(CUptiResult result, const char** text) {
  static thread_local char buffer[32];
  snprintf(buffer, sizeof buffer, "FAKE_RESULT_%d", static_cast<int>(result));
  *text = buffer;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI get_timestamp(uint64_t* timestamp) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *timestamp = static_cast<uint64_t>(clock_ns()) + 5'000'000;
  return enter("GetTimestamp");
}
CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                               void* user) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("Subscribe");
  if (result != CUPTI_SUCCESS) return result;
  if (!world->other_tool.empty() || world->attached) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  world->attached = true;
  world->callback = callback;
  world->user = user;
  world->correlation = 0;  // ids restart at every attach
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(uint64_t{0x5b});
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI subscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                  void* user, CUpti_SubscriberParams* params) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!world->other_tool.empty() && params != nullptr && params->oldSubscriberName != nullptr) {
    strncpy(params->oldSubscriberName, world->other_tool.c_str(), params->oldSubscriberSize - 1);
  }
  return subscribe(handle, callback, user);
}
CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  world->callback = nullptr;
  return enter("Unsubscribe");
}
CUptiResult CUPTIAPI enable_callback(uint32_t on, CUpti_SubscriberHandle,
                                     CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("EnableCallback");
  if (result != CUPTI_SUCCESS) return result;
  // Numbers that CUPTI 12 does not have yet.
  if (world->version < 130000 &&
      id >= (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? uint32_t{487} : uint32_t{782})) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (on != 0) {
    world->enabled.insert({domain, id});
  } else {
    world->enabled.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                        CUpti_BuffersCallbackCompleteFunc complete) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityRegisterCallbacks");
  if (result != CUPTI_SUCCESS) return result;
  world->request = request;
  world->complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI activity_enable(CUpti_ActivityKind kind) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityEnable");
  if (result == CUPTI_SUCCESS) world->kinds.insert(kind);
  return result;
}
CUptiResult CUPTIAPI activity_disable(CUpti_ActivityKind kind) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityDisable");
  if (result == CUPTI_SUCCESS) world->kinds.erase(kind);
  return result;
}
CUptiResult CUPTIAPI flush_all(uint32_t flag) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityFlushAll");
  if (result != CUPTI_SUCCESS) return result;
  if (world->complete == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  deliver_ready(true, (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityGetNextRecord");
  if (result != CUPTI_SUCCESS) return result;
  uint8_t* next =
      *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + record_bytes(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI dropped_records(CUcontext, uint32_t, size_t* count) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  *count = world->dropped;
  world->dropped = 0;
  return enter("ActivityGetNumDroppedRecords");
}
CUptiResult CUPTIAPI finalize() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("Finalize");
  if (result != CUPTI_SUCCESS) return result;
  world->attached = false;
  world->callback = nullptr;
  world->enabled.clear();
  world->kinds.clear();
  world->buffers.clear();
  world->request = nullptr;
  world->complete = nullptr;
  world->timestamp = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc callback) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const CUptiResult result = enter("ActivityRegisterTimestampCallback");
  if (result == CUPTI_SUCCESS) world->timestamp = callback;
  return result;
}
CUptiResult CUPTIAPI set_thread_id_type(CUpti_ActivityThreadIdType) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return enter("SetThreadIdType");
}

constexpr idlescope::cuda::CuptiApi kTable = {
    get_version,      get_result_string, get_timestamp,      subscribe,
    unsubscribe,      enable_callback,   register_callbacks, activity_enable,
    activity_disable, flush_all,         next_record,        dropped_records,
    finalize,         subscribe_v2,      register_timestamp, set_thread_id_type};

}  // namespace

const idlescope::cuda::CuptiApi& table() { return kTable; }

}  // namespace fake_cupti
