#include "analysis/read/kineto_pairs.h"

#include "analysis/read/json_splitter.h"

namespace idlescope::read {
namespace {

// Calls nest some hundred deep on some hundred threads; more open rows than this are a file
// without ends, which must not fill the memory.
constexpr uint64_t kMaxOpenRows = 1 << 16;

std::string spelled(const KinetoId& id) {
  return id.kind == KinetoId::kNumber ? std::to_string(id.number) : std::string(id.text);
}

}  // namespace

std::string KinetoPairs::key(const KinetoEvent& event) {
  return spelled(event.pid) + '\n' + spelled(event.tid);
}

void KinetoPairs::open(const KinetoEvent& begin, std::string_view object) {
  if (open_rows_ >= kMaxOpenRows) {
    ++refused_;
    return;
  }
  std::string text;
  text.reserve(object.size() + JsonSplitter::kPadding);
  text = object;
  open_[key(begin)].push_back(std::move(text));
  ++open_rows_;
}

std::optional<std::string> KinetoPairs::close(const KinetoEvent& end) {
  const auto found = open_.find(key(end));
  if (found == open_.end() || found->second.empty()) {
    ++ends_alone_;
    return std::nullopt;
  }
  std::string text = std::move(found->second.back());
  found->second.pop_back();
  --open_rows_;
  text.append(JsonSplitter::kPadding, ' ');
  return text;
}

}  // namespace idlescope::read
