#include "profiler/session/diagnostics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "profiler/emit/trace_file.h"
#include "profiler/session/options.h"
#include "proto/messages.h"

namespace idlescope::session {
namespace {

// Shared with forked children, so that sixteen workers on a full disk say it once even when
// the first of them meets the trouble before their parent does.
std::atomic<bool> said_here{false};
std::atomic<bool>* said = &said_here;

void write_line(const char* text, size_t size) {
  char line[1200];
  size_t used = 0;
  if (isatty(STDERR_FILENO) != 0) {
    static constexpr char kClearLine[] = "\r\033[K";
    memcpy(line, kClearLine, sizeof kClearLine - 1);
    used = sizeof kClearLine - 1;
  }
  if (size > sizeof line - used - 1) size = sizeof line - used - 1;
  memcpy(line + used, text, size);
  used += size;
  line[used++] = '\n';
  // One write: lines of several processes do not mix. A closed stderr is the job's choice.
  [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, line, used);
}

// The file system's words. strerror may allocate and is locale dependent.
const char* reason_text(int error, char* out, size_t capacity) {
  switch (error) {
    case EACCES:
      return "permission denied";
    case EROFS:
      return "read-only file system";
    case ENOENT:
      return "the directory is gone";
    case ENOTDIR:
      return "a part of the path is not a directory";
    case EFBIG:
      return "the file size limit (ulimit -f) is reached";
    case ENOMEM:
      return "out of memory";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case ENAMETOOLONG:
      return "the path is too long";
    case ESTALE:
      return "the file was replaced";
    case EIO:
      return "input/output error";
    case ENOTCONN:
    case ESHUTDOWN:
    case ETIMEDOUT:
      return "the file system does not answer";
    case EPERM:
      return "not permitted";
    default:
      snprintf(out, capacity, "error %d", error);
      return out;
  }
}

void size_text(uint64_t bytes, char* out, size_t capacity) {
  if (bytes >= 1'000'000'000) {
    snprintf(out, capacity, "%.1f GB", static_cast<double>(bytes) / 1e9);
  } else if (bytes >= 1'000'000) {
    snprintf(out, capacity, "%.1f MB", static_cast<double>(bytes) / 1e6);
  } else {
    snprintf(out, capacity, "%llu KB", static_cast<unsigned long long>(bytes / 1000));
  }
}

}  // namespace

void share_complaint_with_children() {
  void* page = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) said = static_cast<std::atomic<bool>*>(page);  // zero: not said
}

size_t fill_message(char* out, size_t capacity, const char* pattern, size_t pattern_size,
                    const MessageValue* values, size_t count) {
  size_t used = 0;
  auto add = [&](const char* text, size_t size) {
    if (size > capacity - 1 - used) size = capacity - 1 - used;
    memcpy(out + used, text, size);
    used += size;
  };
  for (size_t at = 0; at < pattern_size;) {
    const char* text = pattern + at;
    const char* close = nullptr;
    if (*text == '{') {
      close = static_cast<const char*>(memchr(text, '}', pattern_size - at));
    }
    if (close == nullptr) {
      add(text, 1);
      ++at;
      continue;
    }
    const size_t name_size = static_cast<size_t>(close - text - 1);
    const MessageValue* found = nullptr;
    for (size_t i = 0; i < count; ++i) {
      if (strlen(values[i].name) == name_size &&
          strncmp(values[i].name, text + 1, name_size) == 0) {
        found = &values[i];
      }
    }
    if (found != nullptr) {
      add(found->text, strlen(found->text));
    } else {
      add(text, name_size + 2);
    }
    at += name_size + 2;
  }
  out[used] = '\0';
  return used;
}

void complain_once(const char* message_id, const MessageValue* values, size_t count) {
  if (options().disabled || (options().ranks.known && options().ranks.rank != 0)) return;
  if (said->exchange(true, std::memory_order_relaxed)) return;
  const messages::Message* message = messages::find(message_id);
  if (message == nullptr) return;
  char line[1024];
  int used = snprintf(line, sizeof line, "idlescope: [%s] ", message_id);
  if (used < 0) return;
  size_t size = static_cast<size_t>(used);
  size += fill_message(line + size, sizeof line - size, message->text.data(), message->text.size(),
                       values, count);
  write_line(line, size);
}

void report_file_failure(const char* message_id, const char* path, int error) {
  char reason[32];
  char written[32];
  char limit[32];
  // The caller holds the process lock: no file_statistics() here.
  size_text(options().header.max_size_bytes, limit, sizeof limit);
  size_text(emit::file_bytes_unlocked(), written, sizeof written);
  const MessageValue values[] = {{"path", path},
                                 {"directory", options().output},
                                 {"reason", reason_text(error, reason, sizeof reason)},
                                 {"size", written},
                                 {"limit", limit}};
  complain_once(message_id, values, sizeof values / sizeof values[0]);
}

void debug_line(const char* text) {
  if (options().log != LogLevel::kDebug) return;
  char line[1024];
  const int size =
      snprintf(line, sizeof line, "idlescope: debug: %d %s", static_cast<int>(getpid()), text);
  if (size > 0) {
    write_line(line, static_cast<size_t>(size) < sizeof line ? static_cast<size_t>(size)
                                                             : sizeof line - 1);
  }
}

}  // namespace idlescope::session
