#include "profiler/emit/process_identity.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "profiler/emit/name_table.h"
#include "profiler/emit/small_file.h"

namespace idlescope::emit {
namespace {

ProcessIdentity the_identity;

constexpr char kToolName[] = "idlescope " IDLESCOPE_VERSION;
constexpr size_t kMaxCommandLineBytes = 16 * 1024;
constexpr size_t kMaxArguments = 256;

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// Foreign text goes through utf8_copy: protobuf strings must be UTF-8.
void text_field(WireWriter& out, uint32_t field, const char* text, size_t size) {
  char clean[kMaxNameBytes];
  const size_t length = utf8_copy(clean, sizeof clean, text, size);
  if (length != 0) out.bytes_field(field, clean, length);
}

void write_clock_pair(WireWriter& out, uint32_t field) {
  const int64_t before_ns = clock_ns(CLOCK_MONOTONIC);
  const int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
  const int64_t after_ns = clock_ns(CLOCK_MONOTONIC);
  const size_t pair = out.begin(field);
  out.int_field(1, before_ns + (after_ns - before_ns) / 2);
  out.int_field(2, realtime_ns);
  out.int_field(3, after_ns - before_ns);
  out.end(pair);
}

void write_command_line(WireWriter& out, uint32_t field) {
  char text[kMaxCommandLineBytes];
  const size_t size = read_small_file("/proc/self/cmdline", text, sizeof text);
  size_t begin = 0;
  for (size_t count = 0; begin < size && count < kMaxArguments; ++count) {
    const size_t length = strnlen(text + begin, size - begin);
    char clean[kMaxNameBytes];
    const size_t kept = utf8_copy(clean, sizeof clean, text + begin, length);
    out.bytes_field(field, clean, kept);  // an empty argument is an argument
    begin += length + 1;
  }
}

void write_link(WireWriter& out, uint32_t field, const char* link) {
  char target[4096];
  const ssize_t size = readlink(link, target, sizeof target);
  if (size > 0) text_field(out, field, target, static_cast<size_t>(size));
}

void write_process(WireWriter& out, uint32_t field) {
  const ProcessIdentity& me = the_identity;
  const size_t process = out.begin(field);
  text_field(out, 1, me.host, strlen(me.host));
  out.int_field(2, getpid());
  out.int_field_if(3, getppid());
  out.int_field_if(4, process_start_ns());
  write_link(out, 5, "/proc/self/exe");
  write_command_line(out, 6);
  write_link(out, 7, "/proc/self/cwd");
  out.uint_field_if(8, static_cast<uint32_t>(me.role));
  if (me.ranks.known) {
    out.bool_field(9, true);
    out.int_field_if(10, me.ranks.rank);
    out.int_field_if(11, me.ranks.local_rank);
    out.int_field_if(12, me.ranks.world_size);
  }
  text_field(out, 13, me.ranks.job_id, strlen(me.ranks.job_id));
  text_field(out, 14, me.python_version, strlen(me.python_version));
  text_field(out, 15, me.torch_version, strlen(me.torch_version));
  out.uint_field_if(16, usable_cpus());
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) out.uint_field(17, static_cast<uint64_t>(online));
  out.end(process);
}

void write_options(WireWriter& out, uint32_t field) {
  const HeaderOptions& options = the_identity.options;
  const size_t message = out.begin(field);
  out.string_field(1, options.window);
  if (options.budget > 0) out.double_field(2, options.budget);
  out.uint_field_if(3, options.max_size_bytes);
  out.string_field(4, options.detail);
  if (options.rank_count != 0) {
    const size_t ranks = out.begin(5);
    for (size_t i = 0; i < options.rank_count; ++i) {
      out.raw_varint(static_cast<uint64_t>(int64_t{options.ranks[i]}));
    }
    out.end(ranks);
  }
  out.end(message);
}

// Directory of this process's cgroup (version 2), or false.
bool cgroup_directory(char* out, size_t capacity) {
  char text[4096];
  read_small_file("/proc/self/cgroup", text, sizeof text);
  const char* line = strstr(text, "0::/");
  if (line == nullptr || (line != text && line[-1] != '\n')) return false;
  const char* path = line + 3;
  size_t length = strcspn(path, "\n");
  if (length == 1) length = 0;  // "/"
  static constexpr char kRoot[] = "/sys/fs/cgroup";
  if (sizeof kRoot + length > capacity) return false;
  memcpy(out, kRoot, sizeof kRoot - 1);
  memcpy(out + sizeof kRoot - 1, path, length);
  out[sizeof kRoot - 1 + length] = '\0';
  return true;
}

// "50000 100000" of one cpu.max, in thousandths of a CPU; 0: no limit.
uint32_t parse_cpu_max(const char* text) {
  char* rest = nullptr;
  const unsigned long long quota = strtoull(text, &rest, 10);
  if (rest == text) return 0;  // "max 100000"
  const unsigned long long period = strtoull(rest, nullptr, 10);
  if (quota == 0 || period == 0) return 0;
  const unsigned long long millicpu = quota * 1000 / period;
  return millicpu > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(millicpu);
}

}  // namespace

ProcessIdentity& identity() { return the_identity; }

int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

uint64_t process_start_ticks() {
  char text[1024];
  if (read_small_file("/proc/self/stat", text, sizeof text) == 0) return 0;
  // Field 22, counted behind the command's name, which may hold spaces and brackets.
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
}

int64_t process_start_ns() {
  const uint64_t ticks = process_start_ticks();
  const long rate = sysconf(_SC_CLK_TCK);
  if (ticks == 0 || rate <= 0) return 0;
  // The kernel counts since boot with suspended time in (proc(5)), CLOCK_MONOTONIC without.
  const int64_t suspended_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  return static_cast<int64_t>(ticks) * (1'000'000'000 / rate) - suspended_ns;
}

uint32_t cgroup_quota_millicpu() {
  char directory[4200];
  char text[128];
  uint32_t smallest = 0;
  if (cgroup_directory(directory, sizeof directory - 16)) {
    // The tightest limit on the way up to the root counts.
    for (size_t length = strlen(directory); length >= sizeof "/sys/fs/cgroup" - 1;) {
      memcpy(directory + length, "/cpu.max", sizeof "/cpu.max");
      if (read_small_file(directory, text, sizeof text) != 0) {
        const uint32_t limit = parse_cpu_max(text);
        if (limit != 0 && (smallest == 0 || limit < smallest)) smallest = limit;
      }
      directory[length] = '\0';
      const char* parent = strrchr(directory, '/');
      if (parent == nullptr) break;
      length = static_cast<size_t>(parent - directory);
      directory[length] = '\0';
    }
  }
  if (smallest == 0) {  // version 1
    char period[64];
    if (read_small_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text) != 0 &&
        text[0] != '-' &&
        read_small_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period) != 0) {
      const unsigned long long quota_us = strtoull(text, nullptr, 10);
      const unsigned long long period_us = strtoull(period, nullptr, 10);
      if (quota_us != 0 && period_us != 0) {
        smallest = static_cast<uint32_t>(quota_us * 1000 / period_us);
      }
    }
  }
  return smallest;
}

uint32_t usable_cpus() {
  // Large enough for 8192 CPUs; sched_getaffinity fails on a set smaller than the kernel's.
  cpu_set_t sets[8];
  memset(sets, 0, sizeof sets);
  uint32_t cpus = 0;
  if (sched_getaffinity(0, sizeof sets, sets) == 0) {
    cpus = static_cast<uint32_t>(CPU_COUNT_S(sizeof sets, sets));
  }
  const uint32_t quota = cgroup_quota_millicpu();
  if (quota != 0) {
    const uint32_t rounded_up = (quota + 999) / 1000;
    if (cpus == 0 || rounded_up < cpus) cpus = rounded_up;
  }
  return cpus;
}

void write_header_packet(WireWriter& out) {
  const size_t header = out.begin(1);
  out.uint_field(1, 1);  // format_major
  out.uint_field(2, 1);  // format_minor
  out.string_field(3, kToolName);
  write_process(out, 4);
  write_clock_pair(out, 5);
  write_options(out, 6);
  char boot_id[64];
  read_small_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
  boot_id[strcspn(boot_id, "\n")] = '\0';
  out.string_field(7, boot_id);
  text_field(out, 8, the_identity.library_path, strlen(the_identity.library_path));
  out.end(header);
}

}  // namespace idlescope::emit
