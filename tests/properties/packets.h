// A recorded file as its packets, and changes of it that may not change what it says.
//
// In: the bytes of an .istrace file. Out: its packets, compressed ones expanded, reserved room
// left out; and their bytes again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/trace.pb.h"

namespace idlescope::test {

struct RecordedFile {
  std::string name;
  std::vector<trace::Packet> packets;
};

// The tag and length of the packet at `at`, which moves behind them. False: no packet is there.
bool take_packet_head(const std::string& bytes, size_t& at, uint64_t& length);
std::vector<trace::Packet> packets_of(const std::string& bytes);
std::string bytes_of(const std::vector<trace::Packet>& packets);

// Moves the origin of time: every point in time is `by_ns` later, durations stay.
void shift_time(std::vector<trace::Packet>& packets, int64_t by_ns);

// Other numbers for streams and contexts, in another order.
void renumber_streams(std::vector<trace::Packet>& packets);

// Times and overheads of batches in the other of the two forms that the format has.
void write_other_form(std::vector<trace::Packet>& packets);

// Another order of packets (the header stays first, the footer last) and of the records
// inside the batches of ops, calls and host events.
void shuffle(std::vector<trace::Packet>& packets, uint32_t seed);

}  // namespace idlescope::test
