// One event of a PyTorch profiler trace as plain values.
//
// In: the text of one JSON object. Out: the fields that any dialect since 2020 uses, numbers
// as the text spells them where they are times. Reads nothing twice and skips argument
// lists that no category needs. Not valid JSON: `ok` is false and nothing else holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace idlescope::read {

// pid and tid are numbers, numbers in strings, words ("stream 7", "CPU functions", "") or
// absent, by dialect.
struct KinetoId {
  enum Kind : uint8_t { kAbsent, kNumber, kText };
  Kind kind = kAbsent;
  int64_t number = 0;
  std::string_view text;
};

struct KinetoEvent {
  bool ok = false;
  bool repeated_key = false;
  char phase = 0;
  std::string_view category;
  std::string_view name;
  KinetoId pid;
  KinetoId tid;
  std::string_view ts;  // number as spelled; empty: absent
  std::string_view dur;
  std::string_view end_ts;  // of a row that was a begin and an end; else empty

  // From "args"; absent: nothing.
  std::optional<int64_t> device;
  std::optional<int64_t> context;
  std::optional<int64_t> stream;
  std::optional<int64_t> correlation;
  std::optional<int64_t> bytes;
  std::optional<int64_t> registers;
  std::optional<int64_t> shared_bytes;
  std::optional<int64_t> graph_id;
  std::optional<int64_t> graph_node_id;
  std::optional<int64_t> wait_record_correlation;  // cuda_sync rows
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  std::string_view args_name;      // metadata rows: the process's or thread's name
  std::string_view collective;     // "Collective name"
  std::string_view process_group;  // "Process Group Name"
  std::string_view group_ranks;    // "Process Group Ranks"
  std::string_view dtype;
  std::optional<int64_t> group_size;
  std::optional<int64_t> elements;  // of the larger of input and output
};

class KinetoEventParser {
 public:
  KinetoEventParser();
  ~KinetoEventParser();
  KinetoEventParser(const KinetoEventParser&) = delete;
  KinetoEventParser& operator=(const KinetoEventParser&) = delete;

  // `object` may be read 64 bytes past its end (JsonSplitter::kPadding). The views in the
  // result hold until the next call.
  const KinetoEvent& parse(std::string_view object);
  // A row that began with `object` (ph "B") and ended at `end_ts`, as a whole one.
  const KinetoEvent& parse_whole(std::string_view object, std::string_view end_ts);

 private:
  struct Simd;
  std::unique_ptr<Simd> simd_;
  KinetoEvent event_;
};

// The decimal integer that a JSON number or a string of one spells; nothing if it is none or
// does not fit (unsigned 64-bit values wrap: they are ids, and only equality matters).
std::optional<int64_t> integer_of(std::string_view token);

}  // namespace idlescope::read
