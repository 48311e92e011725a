#include "profiler/emit/append_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace idlescope::emit {
namespace {

constexpr int kHighDescriptor = 500;  // out of the way of jobs that expect small numbers
constexpr int kFirstDescriptor = 3;

}  // namespace

int AppendSink::keep(int of) {
  if (descriptor >= 0) return 0;
  descriptor = fcntl(of, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (descriptor < 0) descriptor = fcntl(of, F_DUPFD_CLOEXEC, kFirstDescriptor);
  return descriptor < 0 ? errno : 0;
}

void AppendSink::forget_inherited(const FileIdentity& parents_file) {
  if (descriptor >= 0 && is_same_file(descriptor, parents_file)) close(descriptor);
  descriptor = -1;
}

int AppendSink::write(const char* path, const FileIdentity& file, const void* bytes, size_t size,
                      uint64_t offset) const {
  if (is_same_file(descriptor, file)) return write_all_at(descriptor, bytes, size, offset);
  const int again = open_same_file(path, file);
  if (again < 0) return -again;
  const int error = write_all_at(again, bytes, size, offset);
  close(again);
  return error;
}

}  // namespace idlescope::emit
