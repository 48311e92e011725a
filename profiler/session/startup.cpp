#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "profiler/emit/fork_page.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/emit/wire_writer.h"
#include "profiler/host/host_events.h"
#include "profiler/host/python_bridge.h"
#include "profiler/session/device_session.h"
#include "profiler/session/diagnostics.h"
#include "profiler/session/entry.h"
#include "profiler/session/options.h"
#include "profiler/session/recording_limits.h"

namespace idlescope::session {
namespace {

bool started = false;

// Our own path, without dladdr (libdl on old systems).
int match_own_object(dl_phdr_info* info, size_t, void* out) {
  const uintptr_t here = reinterpret_cast<uintptr_t>(&match_own_object);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (here < begin || here >= begin + part.p_memsz) continue;
    char* path = static_cast<char*>(out);
    if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
      strncpy(path, info->dlpi_name, sizeof emit::ProcessIdentity{}.library_path - 1);
    } else if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0') {
      if (realpath(info->dlpi_name, path) == nullptr) path[0] = '\0';
    }
    return 1;
  }
  return 0;
}

void share_with_children(const Options& options) {
  // Children that are started by exec find the same directory; the driver and NVTX find us.
  if (!options.output_was_set) setenv("IDLESCOPE_OUTPUT", options.output, 0);
  const char* path = emit::identity().library_path;
  if (path[0] == '\0') return;
  setenv("CUDA_INJECTION64_PATH", path, 0);
  setenv("NVTX_INJECTION64_PATH", path, 0);
}

void write_footer() {
  const emit::FileStatistics file = emit::file_statistics();
  const DeviceStatistics device = device_statistics();
  const int64_t now_ns = emit::monotonic_ns();
  uint8_t packet[512];
  emit::WireWriter out(packet, sizeof packet);
  const size_t footer = out.begin(19);
  out.int_field(1, now_ns);
  out.uint_field(2, file.host_events);
  out.uint_field(3, device.gpu_ops);
  out.uint_field(4, device.host_calls);
  const size_t self = out.begin(5);
  out.int_field_if(1, device.attach_ns);
  out.int_field_if(2, device.detach_ns);
  out.int_field_if(3, device.drain_cpu_ns);
  out.int_field_if(4, now_ns - file.first_event_ns);
  out.int_field_if(5, device.inside_windows_ns);
  out.int_field_if(6, device.estimated_cost_ns);
  out.uint_field_if(7, file.file_bytes);
  out.uint_field_if(8, device.callbacks);
  out.end(self);
  out.end(footer);
  emit::append_packet(out.data(), out.size());
}

}  // namespace

void start_library(int argument_count, char* const* arguments) {
  if (started) return;
  started = true;
  if (getauxval(AT_SECURE) != 0) return;  // set-user-id program: stay out
  share_complaint_with_children();
  emit::ProcessIdentity& me = emit::identity();
  if (gethostname(me.host, sizeof me.host - 1) != 0 || me.host[0] == '\0') {
    memcpy(me.host, "localhost", sizeof "localhost");
  }
  for (char* c = me.host; *c != '\0'; ++c) {
    if (*c == '/') *c = '_';  // part of a file name
  }
  me.role = emit::Role::kMain;
  Options& wanted = options();
  read_options(&wanted, argument_count, arguments);
  if (wanted.disabled || !wanted.rank_selected) return;
  me.ranks = wanted.ranks;
  me.options = wanted.header;
  start_limits(wanted, emit::monotonic_ns());
  dl_iterate_phdr(match_own_object, me.library_path);
  const emit::FileOptions file{wanted.output, wanted.header.max_size_bytes, wanted.append_sink};
  emit::configure_trace_file(file, report_file_failure);
  share_with_children(wanted);
  if (wanted.complaint[0] != '\0') {
    const MessageValue values[] = {{"value", wanted.complaint}};
    complain_once("bad-variable", values, 1);
  }
  host::set_listener({step_seen, on_capture, on_compile, on_other_profiler, wanted.sample_frames});
  host::add_audit_hook();
}

void finish_library() {
  if (!started || !emit::recording_possible()) return;
  finish_device();
  if (emit::trace_path()[0] != '\0') write_footer();
  emit::stop_recording();
}

void finish_job() {
  finish_library();
  emit::stop_recording_of_job();
}

}  // namespace idlescope::session
