#include "tools/run_file.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "proto/run.pb.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Length of the well-formed UTF-8 sequence at the start of `bytes`, 0 if there is none.
size_t sequence_length(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F) ||
      (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) {
    return 0;
  }
  return length;
}

// Those run files of a directory that can be read.
std::vector<run::Run> runs_of(const std::string& directory) {
  std::vector<run::Run> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (!is_run_file_name(entry.path().filename().string())) continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    run::Run run;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    if (!google::protobuf::util::JsonStringToMessage(text.str(), &run, options).ok()) continue;
    out.push_back(std::move(run));
  }
  return out;
}

}  // namespace

std::string run_file_name(const JobIdentity& identity) {
  const int rank = identity.rank.value_or(0);
  return rank == 0 ? "run.json" : "run-" + std::to_string(rank) + ".json";
}

bool is_run_file_name(std::string_view name) {
  if (name == "run.json" || name == "run.json.new") return true;
  if (name.substr(0, 4) != "run-") return false;
  const size_t end = name.find_first_not_of("0123456789", 4);
  return end != 4 && end != name.npos &&
         (name.substr(end) == ".json" || name.substr(end) == ".json.new");
}

bool write_run_file(const std::string& path, const run::Run& run) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;  // "exit_code": 0 is an answer
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(run, &json, options).ok()) return false;
  const std::string temporary = path + ".new";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool written = write_all(file, json);
  const bool closed = close(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

bool is_run_of_job(const std::string& directory, const std::string& job_id) {
  for (const run::Run& run : runs_of(directory)) {
    // Ranks of one job end at different times; without a job id, a run that has ended is an
    // earlier one.
    if (run.job_id() == job_id && (!job_id.empty() || !run.has_end())) return true;
  }
  return false;
}

bool is_still_running(const std::string& directory) {
  utsname system{};
  if (uname(&system) != 0) return false;
  for (const run::Run& run : runs_of(directory)) {
    // A launcher that was killed leaves no end either: is it there?
    if (!run.has_end() && run.host() == to_utf8(system.nodename) && run.launcher_pid() > 0 &&
        (kill(static_cast<pid_t>(run.launcher_pid()), 0) == 0 || errno == EPERM)) {
      return true;
    }
  }
  return false;
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t length = sequence_length(bytes);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
    } else {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace idlescope::tools
