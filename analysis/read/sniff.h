// What kind of file this is, by its first bytes (never by its name, except text protos).
//
// In: the path and the first bytes of a file. Out: which reader can take it, or what it is
// instead and what to do about it.
#pragma once

#include <string_view>

namespace idlescope::read {

enum class Format {
  kUnknown,
  kTrace,      // .istrace
  kTextTrace,  // text proto of idlescope.trace.Trace, for hand-written cases
  kJson,       // Chrome trace JSON of some dialect
  kSqlite,     // perhaps an Nsight Systems export
  kGzip,       // look inside
  kForeign,    // known, and not ours to read: see Sniffed
};

struct Sniffed {
  Format format = Format::kUnknown;
  std::string_view what;  // kForeign: "an Nsight Systems report", a noun phrase
  std::string_view todo;  // kForeign: one sentence with its full stop
};

Sniffed sniff(std::string_view path, std::string_view first_bytes);

}  // namespace idlescope::read
