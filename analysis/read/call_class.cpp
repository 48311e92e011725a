#include "analysis/read/call_class.h"

namespace idlescope::read {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

struct Rule {
  enum How { kPrefix, kPart };
  How how;
  std::string_view text;
  trace::CallClass call_class;
};

using enum Rule::How;

// Names without their cuda/cu/hip prefix; the first rule that fits wins. From the CUDA 12
// runtime and driver headers and HIP's; order matters where one name holds another.
constexpr Rule kRules[] = {
    {kPrefix, "GraphLaunch", trace::CALL_GRAPH_LAUNCH},
    {kPart, "GraphInstantiate", trace::CALL_GRAPH_INSTANTIATE},
    {kPart, "GraphExecUpdate", trace::CALL_GRAPH_INSTANTIATE},
    {kPart, "GraphUpload", trace::CALL_GRAPH_INSTANTIATE},
    {kPart, "BeginCapture", trace::CALL_CAPTURE_BEGIN},
    {kPart, "EndCapture", trace::CALL_CAPTURE_END},
    {kPart, "IsCapturing", trace::CALL_QUERY},
    {kPart, "GetCaptureInfo", trace::CALL_QUERY},
    {kPart, "Query", trace::CALL_QUERY},
    {kPart, "GetAttribute", trace::CALL_QUERY},
    {kPart, "Occupancy", trace::CALL_QUERY},
    {kPart, "GetDevice", trace::CALL_QUERY},
    {kPart, "LaunchKernel", trace::CALL_LAUNCH},
    {kPart, "LaunchCooperative", trace::CALL_LAUNCH},
    {kPart, "LaunchMultiKernel", trace::CALL_LAUNCH},
    {kPart, "LaunchHostFunc", trace::CALL_OTHER},
    {kPrefix, "Launch", trace::CALL_LAUNCH},
    {kPart, "StreamSynchronize", trace::CALL_STREAM_SYNC},
    {kPart, "DeviceSynchronize", trace::CALL_DEVICE_SYNC},
    {kPart, "CtxSynchronize", trace::CALL_DEVICE_SYNC},
    {kPart, "ThreadSynchronize", trace::CALL_DEVICE_SYNC},
    {kPart, "EventSynchronize", trace::CALL_EVENT_SYNC},
    {kPart, "EventRecord", trace::CALL_EVENT_RECORD},
    {kPart, "StreamWaitEvent", trace::CALL_STREAM_WAIT_EVENT},
    {kPart, "MallocHost", trace::CALL_ALLOC_PINNED},
    {kPart, "HostMalloc", trace::CALL_ALLOC_PINNED},
    {kPart, "HostAlloc", trace::CALL_ALLOC_PINNED},
    {kPart, "HostRegister", trace::CALL_ALLOC_PINNED},
    {kPart, "MemAllocHost", trace::CALL_ALLOC_PINNED},
    {kPart, "FreeHost", trace::CALL_FREE_PINNED},
    {kPart, "HostFree", trace::CALL_FREE_PINNED},
    {kPart, "HostUnregister", trace::CALL_FREE_PINNED},
    {kPrefix, "Malloc", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "ExtMalloc", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemAlloc", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemCreate", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemMap", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemSetAccess", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemAddressReserve", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "MemPool", trace::CALL_ALLOC_DEVICE},
    {kPrefix, "Free", trace::CALL_FREE_DEVICE},
    {kPrefix, "MemFree", trace::CALL_FREE_DEVICE},
    {kPrefix, "MemUnmap", trace::CALL_FREE_DEVICE},
    {kPrefix, "MemRelease", trace::CALL_FREE_DEVICE},
    {kPrefix, "MemAddressFree", trace::CALL_FREE_DEVICE},
    {kPrefix, "Memcpy", trace::CALL_MEMCPY},
    {kPrefix, "MemPrefetch", trace::CALL_MEMCPY},
    {kPrefix, "Memset", trace::CALL_MEMSET},
    {kPrefix, "MemsetD", trace::CALL_MEMSET},
    {kPrefix, "ModuleLoad", trace::CALL_MODULE_LOAD},
    {kPrefix, "ModuleLaunchKernel", trace::CALL_LAUNCH},
    {kPrefix, "ModuleGetFunction", trace::CALL_MODULE_LOAD},
    {kPrefix, "LibraryLoad", trace::CALL_MODULE_LOAD},
    {kPrefix, "LibraryGetKernel", trace::CALL_MODULE_LOAD},
    {kPrefix, "Link", trace::CALL_MODULE_LOAD},
};

trace::CopyKind copy_of_call(std::string_view name) {
  if (contains(name, "HtoD")) return trace::COPY_H2D;
  if (contains(name, "DtoH")) return trace::COPY_D2H;
  if (contains(name, "DtoD")) return trace::COPY_D2D;
  if (contains(name, "Peer")) return trace::COPY_P2P;
  return trace::COPY_UNKNOWN;
}

trace::MemoryKind memory_of(std::string_view word) {
  if (contains(word, "Pageable")) return trace::MEMORY_PAGEABLE;
  if (contains(word, "Pinned")) return trace::MEMORY_PINNED;
  if (contains(word, "Device Static") || contains(word, "Device")) return trace::MEMORY_DEVICE;
  if (contains(word, "Array")) return trace::MEMORY_ARRAY;
  if (contains(word, "Managed")) return trace::MEMORY_MANAGED;
  return trace::MEMORY_UNKNOWN;  // "Host" (ROCm) does not say which
}

}  // namespace

CallName classify_call(std::string_view name) {
  CallName result;
  std::string_view rest = name;
  if (starts_with(name, "cuda")) {
    rest.remove_prefix(4);
  } else if (starts_with(name, "hip")) {
    rest.remove_prefix(3);
  } else if (starts_with(name, "cu")) {
    rest.remove_prefix(2);
    result.driver = true;
  }
  result.call_class = trace::CALL_OTHER;
  for (const Rule& rule : kRules) {
    if (rule.how == kPrefix ? starts_with(rest, rule.text) : contains(rest, rule.text)) {
      result.call_class = rule.call_class;
      break;
    }
  }
  if (result.call_class == trace::CALL_MEMCPY) result.copy_kind = copy_of_call(rest);
  return result;
}

CopyName parse_copy_name(std::string_view name) {
  CopyName result;
  if (starts_with(name, "Memset") || name == "FillBuffer") {
    result.is_memset = true;
    return result;
  }
  result.is_copy = starts_with(name, "Memcpy") || starts_with(name, "Copy");
  if (!result.is_copy) return result;
  if (contains(name, "HtoD") || contains(name, "HostToDevice") || contains(name, "HtoA")) {
    result.copy_kind = trace::COPY_H2D;
  } else if (contains(name, "DtoH") || contains(name, "DeviceToHost") || contains(name, "AtoH")) {
    result.copy_kind = trace::COPY_D2H;
  } else if (contains(name, "PtoP") || contains(name, "PeerToPeer")) {
    result.copy_kind = trace::COPY_P2P;
  } else if (contains(name, "DtoD") || contains(name, "DeviceToDevice") || contains(name, "AtoD") ||
             contains(name, "DtoA") || contains(name, "AtoA")) {
    result.copy_kind = trace::COPY_D2D;
  } else if (contains(name, "HtoH")) {
    result.copy_kind = trace::COPY_H2H;
  }
  const size_t open = name.find('(');
  const size_t arrow = name.find("->");
  if (open != name.npos && arrow != name.npos && open < arrow) {
    result.src_kind = memory_of(name.substr(open, arrow - open));
    result.dst_kind = memory_of(name.substr(arrow));
  }
  return result;
}

}  // namespace idlescope::read
