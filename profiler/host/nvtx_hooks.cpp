#include "profiler/host/nvtx_hooks.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "profiler/emit/trace_file.h"
#include "profiler/host/ranges.h"

namespace idlescope::host {
namespace {

constexpr size_t kMaxWideBytes = 1024;

// What a registered string handle points to. Never freed: the job may still hold the handle.
struct RegisteredString {
  size_t size;
  char text[1];
};

struct Text {
  const char* data;
  size_t size;
};

Text text_of(const char* text) { return text == nullptr ? Text{"", 0} : Text{text, strlen(text)}; }

// wchar_t is UTF-32 on Linux.
Text narrow(const wchar_t* text, char* out) {
  size_t size = 0;
  for (; text != nullptr && *text != 0 && size + 4 <= kMaxWideBytes; ++text) {
    const auto c = static_cast<uint32_t>(*text);
    if (c < 0x80) {
      out[size++] = static_cast<char>(c);
    } else if (c < 0x800) {
      out[size++] = static_cast<char>(0xC0 | (c >> 6));
      out[size++] = static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      out[size++] = static_cast<char>(0xE0 | (c >> 12));
      out[size++] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
      out[size++] = static_cast<char>(0x80 | (c & 0x3F));
    } else {
      out[size++] = static_cast<char>(0xF0 | (c >> 18));
      out[size++] = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
      out[size++] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
      out[size++] = static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return {out, size};
}

Text text_of(const nvtxEventAttributes_t* event, char* wide) {
  if (event == nullptr) return {"", 0};
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return text_of(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return narrow(event->message.unicode, wide);
    case NVTX_MESSAGE_TYPE_REGISTERED: {
      const auto* registered = reinterpret_cast<const RegisteredString*>(event->message.registered);
      return registered == nullptr ? Text{"", 0} : Text{registered->text, registered->size};
    }
    default:
      return {"", 0};
  }
}

int push(Text text) { return push_range(RangeCategory::kNvtx, text.data, text.size); }
uint64_t start(Text text) { return start_range(RangeCategory::kNvtx, text.data, text.size); }
void mark(Text text) { write_mark(text.data, text.size); }

nvtxStringHandle_t register_text(Text text) {
  void* memory = malloc(sizeof(RegisteredString) + text.size);
  if (memory == nullptr) return nullptr;
  auto* registered = static_cast<RegisteredString*>(memory);
  registered->size = text.size;
  memcpy(registered->text, text.data, text.size);
  registered->text[text.size] = '\0';
  return reinterpret_cast<nvtxStringHandle_t>(registered);
}

// --- NVTX_CB_MODULE_CORE

void NVTX_API mark_ex(const nvtxEventAttributes_t* event) {
  char wide[kMaxWideBytes];
  mark(text_of(event, wide));
}
void NVTX_API mark_a(const char* text) { mark(text_of(text)); }
void NVTX_API mark_w(const wchar_t* text) {
  char wide[kMaxWideBytes];
  mark(narrow(text, wide));
}
nvtxRangeId_t NVTX_API range_start_ex(const nvtxEventAttributes_t* event) {
  char wide[kMaxWideBytes];
  return start(text_of(event, wide));
}
nvtxRangeId_t NVTX_API range_start_a(const char* text) { return start(text_of(text)); }
nvtxRangeId_t NVTX_API range_start_w(const wchar_t* text) {
  char wide[kMaxWideBytes];
  return start(narrow(text, wide));
}
void NVTX_API range_end(nvtxRangeId_t id) { end_range(id); }
int NVTX_API range_push_ex(const nvtxEventAttributes_t* event) {
  char wide[kMaxWideBytes];
  return push(text_of(event, wide));
}
int NVTX_API range_push_a(const char* text) { return push(text_of(text)); }
int NVTX_API range_push_w(const wchar_t* text) {
  char wide[kMaxWideBytes];
  return push(narrow(text, wide));
}
int NVTX_API range_pop() { return pop_range(); }

// --- NVTX_CB_MODULE_CORE2: the same with a domain, which we do not keep apart

void NVTX_API domain_mark_ex(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  mark_ex(event);
}
nvtxRangeId_t NVTX_API domain_range_start_ex(nvtxDomainHandle_t,
                                             const nvtxEventAttributes_t* event) {
  return range_start_ex(event);
}
void NVTX_API domain_range_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end_range(id); }
int NVTX_API domain_range_push_ex(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  return range_push_ex(event);
}
int NVTX_API domain_range_pop(nvtxDomainHandle_t) { return pop_range(); }
nvtxStringHandle_t NVTX_API domain_register_string_a(nvtxDomainHandle_t, const char* text) {
  return register_text(text_of(text));
}
nvtxStringHandle_t NVTX_API domain_register_string_w(nvtxDomainHandle_t, const wchar_t* text) {
  char wide[kMaxWideBytes];
  return register_text(narrow(text, wide));
}
nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  // Any non-null handle: it says that somebody listens.
  return reinterpret_cast<nvtxDomainHandle_t>(register_text(text_of(name)));
}
nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) {
  char wide[kMaxWideBytes];
  return reinterpret_cast<nvtxDomainHandle_t>(register_text(narrow(name, wide)));
}

class Table {
 public:
  Table(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module) {
    found_ = callbacks->GetModuleFunctionTable(module, &table_, &size_) != 0 && table_ != nullptr;
  }
  bool found() const { return found_; }
  template <typename Function>
  void set(unsigned id, Function* function) {
    if (found_ && id < size_ && table_[id] != nullptr) {
      *table_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
    }
  }

 private:
  NvtxFunctionTable table_ = nullptr;
  unsigned size_ = 0;
  bool found_ = false;
};

}  // namespace

int initialize_nvtx(void* get_export_table) {
  if (get_export_table == nullptr || !emit::recording_possible()) return 0;
  NvtxGetExportTableFunc_t get_table = nullptr;
  memcpy(&get_table, &get_export_table, sizeof get_table);
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  Table core(callbacks, NVTX_CB_MODULE_CORE);
  core.set(NVTX_CBID_CORE_MarkEx, mark_ex);
  core.set(NVTX_CBID_CORE_MarkA, mark_a);
  core.set(NVTX_CBID_CORE_MarkW, mark_w);
  core.set(NVTX_CBID_CORE_RangeStartEx, range_start_ex);
  core.set(NVTX_CBID_CORE_RangeStartA, range_start_a);
  core.set(NVTX_CBID_CORE_RangeStartW, range_start_w);
  core.set(NVTX_CBID_CORE_RangeEnd, range_end);
  core.set(NVTX_CBID_CORE_RangePushEx, range_push_ex);
  core.set(NVTX_CBID_CORE_RangePushA, range_push_a);
  core.set(NVTX_CBID_CORE_RangePushW, range_push_w);
  core.set(NVTX_CBID_CORE_RangePop, range_pop);
  Table core2(callbacks, NVTX_CB_MODULE_CORE2);
  core2.set(NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangeStartEx, domain_range_start_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangeEnd, domain_range_end);
  core2.set(NVTX_CBID_CORE2_DomainRangePushEx, domain_range_push_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangePop, domain_range_pop);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringA, domain_register_string_a);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringW, domain_register_string_w);
  core2.set(NVTX_CBID_CORE2_DomainCreateA, domain_create_a);
  core2.set(NVTX_CBID_CORE2_DomainCreateW, domain_create_w);
  return core.found() || core2.found() ? 1 : 0;
}

}  // namespace idlescope::host
