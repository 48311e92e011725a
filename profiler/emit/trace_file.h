// The one file of this process: mapped host chunks for application threads, whole packets
// for everybody else.
//
// In: committed host records; encoded packets. Out: DIR/HOST.PID.START.N.istrace.
// `reserve` runs on application threads: no lock on the fast path, no allocation, no CUDA,
// no exception. `append` takes the file's mutex and does one write; it is for the drain
// thread and for rare facts (names, devices), never for a per-event path. Both return
// failure silently once the file is unusable; the reason is reported once (session/).
// After any kind of fork the child gets a file of its own at its first event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/host_record.h"

namespace idlescope::emit {

// Room for one record, or null when nothing can be recorded. The caller fills it and
// commits it.
HostRecord* reserve_host_record();
inline void commit_host_record(HostRecord* record, uint32_t kind) {
  record->commit.store(kind, std::memory_order_release);
}

// Appends one packet: `body` is an encoded trace.Packet (without the outer tag and length,
// which this adds). False: not kept.
bool append_packet(const uint8_t* body, size_t size);

// Id of a string in this file's NameTable; adds the entry at first use. Takes a lock: for
// rare events only. 0 when the file is unusable or `text` is empty.
uint32_t name_id(const char* text, size_t size);

}  // namespace idlescope::emit
