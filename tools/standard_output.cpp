#include "tools/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "proto/messages.h"
#include "tools/say.h"

namespace idlescope::tools {

void end_quietly_on_closed_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_UNBLOCK, &pipe, nullptr);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool finish_printing() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  say_error(messages::kCannotWrite,
            {{"path", words(messages::kWordStandardOutput)}, {"reason", std::strerror(errno)}});
  return false;
}

bool write_output_file(const std::string& path, std::string_view text, bool force) {
  if (path == "-") {
    print(text);
    return finish_printing();
  }
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const int file = open(path.c_str(), flags, 0644);
  if (file < 0) {
    if (errno == EEXIST) {
      say_error(messages::kOutputExists, {{"path", path}});
    } else {
      say_error(messages::kCannotWrite, {{"path", path}, {"reason", std::strerror(errno)}});
    }
    return false;
  }
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0) {
      error = errno == EINTR ? 0 : errno;
    } else {
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0) return true;
  say_error(messages::kCannotWrite, {{"path", path}, {"reason", std::strerror(error)}});
  return false;
}

}  // namespace idlescope::tools
