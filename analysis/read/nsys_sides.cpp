#include "analysis/read/nsys_sides.h"

namespace idlescope::read {
namespace {

constexpr uint64_t kThreadMask = 0xFFFFFF;

}  // namespace

uint64_t nsys_process_of(int64_t global_tid) {
  return static_cast<uint64_t>(global_tid) & ~kThreadMask;
}
uint32_t nsys_pid_of(uint64_t global_pid) {
  return static_cast<uint32_t>(global_pid >> 24 & kThreadMask);
}
uint32_t nsys_thread_of(int64_t global_tid) {
  return static_cast<uint32_t>(static_cast<uint64_t>(global_tid) & kThreadMask);
}

NsysSides::Side& NsysSides::side(uint64_t global_pid) {
  std::unique_ptr<Side>& entry = sides_[global_pid];
  if (!entry) entry = std::make_unique<Side>(recording_, path_);
  return *entry;
}

NsysSides::Side* NsysSides::find(uint64_t global_pid) const {
  const auto found = sides_.find(global_pid);
  return found == sides_.end() ? nullptr : found->second.get();
}

void NsysSides::read_strings() {
  file_.scan("StringIds", {"id", "value"}, [this](const SqliteRow& row) {
    strings_.emplace(row.integer(0), std::string(row.text(1)));
  });
}

std::string_view NsysSides::text(int64_t id) const {
  const auto found = strings_.find(id);
  return found == strings_.end() ? std::string_view() : std::string_view(found->second);
}

bool NsysSides::times(const SqliteRow& row, size_t begin, size_t end, Side& side, Ns& begin_ns,
                      Ns& end_ns) {
  if (!row.is_number(begin) || !row.is_number(end)) {
    ++side.bad_numbers;
    return false;
  }
  begin_ns = row.integer(begin);
  end_ns = row.integer(end);
  return true;
}

}  // namespace idlescope::read
