// The one file of this process: mapped host chunks for application threads, whole packets
// for everybody else.
//
// In: committed host records; encoded packets. Out: DIR/HOST.PID.START.N.istrace.
// `reserve` runs on application threads: no lock on the fast path, no allocation, no CUDA,
// no exception. `append` takes the process lock for a moment and does two writes; it is for
// the drain thread and for rare facts (names, devices), never for a per-event path. Both
// return failure silently once the file is unusable; the reason is reported once (session/).
// After any kind of fork the child gets a file of its own at its first event; a process
// without events makes none. The file is opened by path for each growth and closed again: a
// kept descriptor could be closed and reused by the job (jobs that close all descriptors).
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/emit/host_record.h"

namespace idlescope::emit {

struct FileOptions {
  const char* directory;    // absolute; copied; made at the first event
  uint64_t max_size_bytes;  // of all files in the directory; 0: no limit
  bool force_append_sink;   // never map (tests; file systems that a user distrusts)
};

// Why nothing more is recorded, for the one line on stderr. `message_id` is of
// proto/messages_en.def.
using FailureReport = void (*)(const char* message_id, const char* path, int error);

// Called once, by the library's constructor, before any event. Without it nothing is
// recorded.
void configure_trace_file(const FileOptions& options, FailureReport report);

// Room for one record, or null when nothing can be recorded. The caller fills it and
// commits it. thread_id is already set.
HostRecord* reserve_host_record();

// Set when records go to the file by write() and not through a mapping.
extern bool g_append_sink;
void write_host_record(HostRecord* record);

inline void commit_host_record(HostRecord* record, uint32_t kind) {
  record->commit.store(kind, std::memory_order_release);
  if (g_append_sink) write_host_record(record);
}

// Appends one packet: `body` is an encoded trace.Packet (without the outer tag and length,
// which this adds). False: not kept.
bool append_packet(const uint8_t* body, size_t size);

// Id of a string in this file's NameTable; adds the entry at first use. Takes a lock: for
// rare events only. 0 when the file is unusable or `text` is empty.
uint32_t name_id(const char* text, size_t size);

// Prepares the next chunk ahead of need and makes full ones small: their records become a
// compressed packet, their place in the file is used again. For a thread that may wait on the
// disk and compress (the drain thread, about ten times a second); without it an application
// thread makes a chunk when the last one is full, and full ones stay as they are.
void prepare_host_chunk();

// Number of this process in a line of forks: another one in the child of a fork, from its
// first instruction on. Whoever caches name ids, thread ids or descriptors compares it.
uint32_t file_generation();

// True while events are being kept or would be (no file yet).
bool recording_possible();
// Stops recording in this process and its later children; what is in the file stays.
void stop_recording();
// The same for all processes of the job on this host, at the latest when their room is used up.
void stop_recording_of_job();
// Undoes stop_recording and a constructor that found nothing to do. False: no configuration.
bool resume_recording();

struct FileStatistics {
  uint64_t file_bytes;
  uint64_t host_events;  // reserved records
  int64_t first_event_ns;
};
FileStatistics file_statistics();
// The file's size for a failure report, which runs under the process lock.
uint64_t file_bytes_unlocked();

// Path of this process's file; empty before the first event.
const char* trace_path();

}  // namespace idlescope::emit
