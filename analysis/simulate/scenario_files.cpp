#include "analysis/simulate/scenario_files.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "analysis/simulate/loop_program.h"

namespace idlescope::simulate {
namespace {

// Entries of maps in order of their keys: a plain serialisation orders them by hash.
std::string bytes_of(const google::protobuf::MessageLite& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

}  // namespace

std::optional<std::vector<NamedBytes>> scenario_files(const Scenario& scenario) {
  Program program = build_loop(job(scenario));
  Execution run = execute(program);
  if (!run.complete) return std::nullopt;
  std::vector<NamedBytes> out;
  for (const RecordedProcess& process : record(program, run, scenario.view)) {
    out.emplace_back(process.file_name, bytes_of(process.trace));
  }
  out.emplace_back("truth.pb", bytes_of(truth_of(scenario, program, run)));
  return out;
}

uint64_t digest(const std::vector<NamedBytes>& files) {
  uint64_t hash = 14695981039346656037ULL;
  auto add = [&](const std::string& text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ text.size()) * 1099511628211ULL;
  };
  for (const auto& [name, content] : files) {
    add(name);
    add(content);
  }
  return hash;
}

}  // namespace idlescope::simulate
