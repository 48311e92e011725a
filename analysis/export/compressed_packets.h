// Writes packets of a Perfetto trace in compressed bundles, about a tenth of their size.
//
// In: serialised TracePackets in order. Out: TracePackets that hold a zlib stream of the next
// 512 KiB of them (TracePacket.compressed_packets, which Perfetto's own recorder writes for
// TraceConfig.COMPRESSION_TYPE_DEFLATE), so that memory does not grow with the output.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace idlescope::exporting {

class CompressedPackets {
 public:
  explicit CompressedPackets(std::ostream& out) : out_(out) {}
  void add(std::string_view packet);
  void flush();

 private:
  std::ostream& out_;
  std::string bundle_;  // a Trace message: packets with their tags
};

}  // namespace idlescope::exporting
