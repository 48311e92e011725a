#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "profiler/cuda/cupti_api.h"

namespace idlescope::cuda {
namespace {

const CuptiApi* test_api = nullptr;

constexpr size_t kPathBytes = 512;
using Path = char[kPathBytes];

// What the process has mapped already.
struct Mapped {
  Path cupti[4];
  uint32_t cupti_count = 0;
  Path cudart;
  uint32_t cudart_major = 0;
};

// "…/libcupti.so.13.0" with stem "libcupti.so" gives 13; no number gives 0, another file -1.
int major_of(const char* path, const char* stem) {
  const char* slash = strrchr(path, '/');
  const char* file = slash == nullptr ? path : slash + 1;
  const size_t size = strlen(stem);
  if (strncmp(file, stem, size) != 0) return -1;
  if (file[size] == '\0') return 0;
  if (file[size] != '.') return -1;
  const int value = atoi(file + size + 1);
  // Releases before 13 name the file by year too: libcupti.so.2025.1.1 is of CUDA 12.
  return value > 100 ? 12 : value;
}

int collect(dl_phdr_info* info, size_t, void* data) {
  auto* mapped = static_cast<Mapped*>(data);
  if (info->dlpi_name == nullptr || strlen(info->dlpi_name) >= kPathBytes) return 0;
  if (major_of(info->dlpi_name, "libcupti.so") >= 0 && mapped->cupti_count < 4) {
    strcpy(mapped->cupti[mapped->cupti_count++], info->dlpi_name);
  }
  const int cudart = major_of(info->dlpi_name, "libcudart.so");
  if (cudart > 0 && mapped->cudart_major == 0) {
    mapped->cudart_major = static_cast<uint32_t>(cudart);
    strcpy(mapped->cudart, info->dlpi_name);
  }
  return 0;
}

template <typename Function>
bool resolve(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool fill(void* library, CuptiApi* api, CuptiSearch* search) {
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto* function) {
    if (!resolve(library, name, function) && missing == nullptr) missing = name;
  };
  need("cuptiGetVersion", &api->GetVersion);
  need("cuptiGetResultString", &api->GetResultString);
  need("cuptiGetTimestamp", &api->GetTimestamp);
  need("cuptiSubscribe", &api->Subscribe);
  need("cuptiUnsubscribe", &api->Unsubscribe);
  need("cuptiEnableCallback", &api->EnableCallback);
  need("cuptiActivityRegisterCallbacks", &api->ActivityRegisterCallbacks);
  need("cuptiActivityEnable", &api->ActivityEnable);
  need("cuptiActivityDisable", &api->ActivityDisable);
  need("cuptiActivityFlushAll", &api->ActivityFlushAll);
  need("cuptiActivityGetNextRecord", &api->ActivityGetNextRecord);
  need("cuptiActivityGetNumDroppedRecords", &api->ActivityGetNumDroppedRecords);
  need("cuptiFinalize", &api->Finalize);
  resolve(library, "cuptiSubscribe_v2", &api->Subscribe_v2);
  resolve(library, "cuptiActivityRegisterTimestampCallback",
          &api->ActivityRegisterTimestampCallback);
  resolve(library, "cuptiSetThreadIdType", &api->SetThreadIdType);
  if (missing != nullptr) {
    snprintf(search->detail, sizeof search->detail, "it has no %s", missing);
    return false;
  }
  return true;
}

class Search {
 public:
  Search(CuptiApi* api, CuptiSearch* result) : api_(api), result_(result) {}

  bool take(const char* path, bool only_if_mapped) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | (only_if_mapped ? RTLD_NOLOAD : 0));
    if (library == nullptr) {
      if (!only_if_mapped) {
        const char* reason = dlerror();
        snprintf(result_->detail, sizeof result_->detail, "%s",
                 reason == nullptr ? "unknown reason" : reason);
      }
      return false;
    }
    // Kept open for the life of the process: CUPTI cannot be unloaded safely.
    if (!fill(library, api_, result_)) return false;
    snprintf(result_->path, sizeof result_->path, "%.511s", path);
    result_->found = true;
    const int major = major_of(path, "libcupti.so");
    result_->major = major > 0 ? static_cast<uint32_t>(major) : 0;
    return true;
  }

  bool take_beside(const char* file, const char* relative, uint32_t major) {
    const char* slash = strrchr(file, '/');
    if (slash == nullptr) return false;
    char path[2 * kPathBytes];
    snprintf(path, sizeof path, "%.*s/%slibcupti.so.%u", static_cast<int>(slash - file), file,
             relative, major);
    return take(path, false);
  }

 private:
  CuptiApi* api_;
  CuptiSearch* result_;
};

}  // namespace

void set_cupti_for_test(const CuptiApi* api) { test_api = api; }

CuptiSearch load_cupti(uint32_t wanted_major, CuptiApi* api) {
  CuptiSearch result = {};
  if (test_api != nullptr) {
    *api = *test_api;
    result.found = true;
    return result;
  }
  Mapped mapped;
  dl_iterate_phdr(collect, &mapped);
  if (wanted_major == 0) wanted_major = mapped.cudart_major;
  Search search(api, &result);

  // Frameworks bring their own CUPTI and have it mapped before the first CUDA call; Triton
  // ships one of CUDA 12 beside a CUDA 13 PyTorch, hence the version first.
  for (uint32_t i = 0; i < mapped.cupti_count; ++i) {
    const int major = major_of(mapped.cupti[i], "libcupti.so");
    if (wanted_major != 0 && major > 0 && static_cast<uint32_t>(major) != wanted_major) continue;
    if (search.take(mapped.cupti[i], true)) return result;
  }
  const uint32_t first = wanted_major == 12 ? 12 : 13;
  for (const uint32_t major : {first, 25 - first}) {
    if (wanted_major != 0 && major != wanted_major && mapped.cudart_major != 0) continue;
    if (mapped.cudart_major == major) {
      // pip wheels: nvidia/cu13/lib holds both; before, nvidia/cuda_runtime/lib and
      // nvidia/cuda_cupti/lib. Toolkits: lib64 and extras/CUPTI/lib64.
      if (search.take_beside(mapped.cudart, "", major)) return result;
      if (search.take_beside(mapped.cudart, "../../cuda_cupti/lib/", major)) return result;
      if (search.take_beside(mapped.cudart, "../extras/CUPTI/lib64/", major)) return result;
    }
    char path[kPathBytes];
    snprintf(path, sizeof path, "libcupti.so.%u", major);
    if (search.take(path, false)) return result;
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"}) {
      snprintf(path, sizeof path, "%s/libcupti.so.%u", folder, major);
      if (search.take(path, false)) return result;
    }
  }
  return result;
}

const char* result_text(const CuptiApi& api, CUptiResult result) {
  const char* text = nullptr;
  if (api.GetResultString != nullptr && api.GetResultString(result, &text) == CUPTI_SUCCESS &&
      text != nullptr) {
    return text;
  }
  return "an unknown CUptiResult";
}

}  // namespace idlescope::cuda
