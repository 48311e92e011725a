// Cuts the bytes of a trace file into packets.
//
// In: the bytes of a serialised trace.Trace, or any prefix of one. Out: one slice per packet,
// pointing into those bytes, then how the file ended. Rules of the framing (padded lengths,
// reserved zero room, unknown fields) are in proto/README.md. Decodes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace idlescope::read {

// Reads one varint at the front of `bytes` and removes it. False: cut or longer than 10
// bytes. Padded (non-minimal) encodings are accepted.
bool take_varint(std::string_view& bytes, uint64_t& value);

struct PacketSlice {
  uint64_t offset = 0;    // of the packet's tag in the file
  uint32_t field = 0;     // which body of trace.Packet; 0: none that is length-delimited
  std::string_view body;  // serialised message of that field
  bool cut = false;       // the file ends inside it (given only for host chunks, whose
                          // records before the cut are whole)
};

class PacketStream {
 public:
  explicit PacketStream(std::string_view bytes, uint64_t base_offset = 0)
      : all_(bytes), rest_(bytes), base_offset_(base_offset) {}

  std::optional<PacketSlice> next();

  enum class End {
    kNotYet,
    kComplete,   // at a packet boundary
    kReserved,   // in a run of zero bytes to the end of the file
    kTruncated,  // inside a packet
    kCorrupt,    // at bytes that are no packet
  };
  End end() const { return end_; }
  uint64_t end_offset() const { return end_offset_; }  // of the boundary before the end
  // Runs of zero bytes between packets: room a thread reserved and died before using.
  uint64_t holes() const { return holes_; }
  uint64_t first_hole_offset() const { return first_hole_offset_; }

 private:
  std::optional<PacketSlice> stop(End end, uint64_t offset);
  uint64_t position() const { return base_offset_ + (all_.size() - rest_.size()); }

  std::string_view all_;
  std::string_view rest_;
  uint64_t base_offset_;
  End end_ = End::kNotYet;
  uint64_t end_offset_ = 0;
  uint64_t holes_ = 0;
  uint64_t first_hole_offset_ = 0;
};

}  // namespace idlescope::read
