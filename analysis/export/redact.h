// Takes out of a recording what a person may not want to send: host names, directories,
// command lines, URLs, network and mail addresses, user names in paths.
//
// In: texts, or one native trace as bytes. Out: the same with those parts replaced by stable
// placeholders (equal parts stay equal, so reports group as before). Times, sizes, kernel and
// API names stay, and so do the names of the user's files without their directories: the
// report's "train.py:41" is what makes it useful. What a user named himself (NVTX and Python
// ranges) stays too, but for paths, URLs, addresses and hosts inside it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "analysis/read/fault.h"

namespace idlescope::trace {
class Packet;
}

namespace idlescope::exporting {

class Redactor {
 public:
  std::string host(std::string_view name);  // "node17" -> "host1"
  // Known hosts, URLs, addresses and paths inside a text: "/home/me/job/train.py:41 loop" ->
  // "dir1/train.py:41 loop", "s3://bucket/key?token=x" -> "url1".
  std::string text(std::string_view text);

  void packet(trace::Packet* packet);

 private:
  std::string placeholder(std::string_view kind, std::string_view what);
  std::string path(std::string_view word);
  std::string without_hosts(std::string_view word) const;
  std::map<std::string, std::string, std::less<>> known_;
  std::map<std::string, std::string, std::less<>> hosts_;
  std::map<std::string, int, std::less<>> counts_;
};

// A whole .istrace file. What is not a trace is a fault; a file that ends inside a packet is
// redacted up to there. Fields that this program does not know are dropped: nobody can say
// what they hold.
read::Expected<std::string> redact_trace(std::string_view file, const std::string& path,
                                         Redactor* redactor);

}  // namespace idlescope::exporting
