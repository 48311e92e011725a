#include "profiler/emit/trace_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "profiler/emit/append_sink.h"
#include "profiler/emit/chunk_memory.h"
#include "profiler/emit/chunk_packer.h"
#include "profiler/emit/file_placement.h"
#include "profiler/emit/fork_page.h"
#include "profiler/emit/host_chunk.h"
#include "profiler/emit/name_table.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/wire_writer.h"

namespace idlescope::emit {

bool g_append_sink = false;

namespace {

constexpr uint32_t kFirstChunkBytes = 64 * 1024;
constexpr uint32_t kLargestChunkBytes = 1024 * 1024;
constexpr size_t kMaxChunks = 64;  // mapped at once; complete ones are unmapped
constexpr size_t kHeaderBytes = 64 * 1024;
constexpr size_t kPacketPrefixBytes = 1 + 10;

struct Configuration {
  char directory[kMaxPathBytes];
  uint64_t max_size_bytes;
  bool force_append_sink;
  bool present;
  FailureReport report;
};
Configuration configuration;

// Everything about the file of this process. Written under the process lock; a forked child
// resets it before use (begin_process). Zero-initialised, no destructor.
struct TraceFile {
  char path[kMaxPathBytes];
  FileIdentity file;
  uint64_t end_bytes;  // packets and chunks so far
  uint32_t next_chunk_bytes;
  uint64_t retired_events;
  int64_t first_event_ns;
  AppendSink append;
  NameTable names;
  HostChunk chunks[kMaxChunks];
};
TraceFile file;

std::atomic<HostChunk*> current_chunk{nullptr};
std::atomic<HostChunk*> spare_chunk{nullptr};
std::atomic<uint32_t> generation{0};
// Moves full chunks; made by the first thread that prepares chunks, never destroyed. One moves at
// a time.
ChunkPacker* packer = nullptr;
std::atomic<bool> moving{false};

struct ThreadIdentity {
  uint32_t id;
  uint32_t generation;
};
thread_local ThreadIdentity this_thread;

ProcessState state() {
  return static_cast<ProcessState>(fork_page()->state.load(std::memory_order_acquire));
}
void set_state(ProcessState value) {
  fork_page()->state.store(static_cast<uint32_t>(value), std::memory_order_release);
}

// Gives up for this process. The job is told once, through session/.
void fail(const char* message_id, int error) {
  set_state(ProcessState::kOff);
  if (configuration.report != nullptr) {
    configuration.report(message_id, file.path[0] != '\0' ? file.path : configuration.directory,
                         error);
  }
}

void fail_to_grow(int error) {
  fail(error == ENOSPC || error == EDQUOT ? "disk-full" : "output-failed", error);
}

bool may_grow(uint64_t bytes) {
  if (!within_file_size_limit(file.end_bytes + bytes)) {
    fail("output-failed", EFBIG);
    return false;
  }
  switch (book_bytes(configuration.directory, identity().host, configuration.max_size_bytes,
                     file.end_bytes, bytes)) {
    case Booking::kGranted:
      return true;
    case Booking::kLimitReached:
      fail("size-limit", 0);
      return false;
    case Booking::kStopped:
      set_state(ProcessState::kOff);
      return false;
  }
  return false;
}

// Takes back what a failed write left behind the last whole packet. Never cuts a mapping:
// those end before.
void cut_at_end_locked(int descriptor) {
  [[maybe_unused]] const int ignored = ftruncate(descriptor, static_cast<off_t>(file.end_bytes));
}

// Appends a complete packet. Process lock held, used while the file is being made too.
int append_locked(int descriptor, const uint8_t* body, size_t size) {
  uint8_t prefix[kPacketPrefixBytes];
  prefix[0] = 0x0A;
  const size_t prefix_bytes = static_cast<size_t>(put_varint(prefix + 1, size) - prefix);
  int error = write_all_at(descriptor, prefix, prefix_bytes, file.end_bytes);
  if (error == 0) error = write_all_at(descriptor, body, size, file.end_bytes + prefix_bytes);
  if (error == 0) {
    file.end_bytes += prefix_bytes + size;
  } else {
    cut_at_end_locked(descriptor);
  }
  return error;
}

HostChunk* free_chunk_descriptor() {
  for (HostChunk& chunk : file.chunks) {
    if (chunk.map == nullptr) return &chunk;
  }
  return nullptr;
}

// Unmaps chunks that no thread can still write to, so that a long job's resident size does
// not grow with its trace. Where somebody moves them, only when they do not keep up.
void retire_complete_chunks(const HostChunk* in_use) {
  size_t mapped = 0;
  for (const HostChunk& chunk : file.chunks) mapped += chunk.map != nullptr ? 1 : 0;
  if (packer != nullptr && !g_append_sink && mapped < kMaxChunks / 2) return;
  for (HostChunk& chunk : file.chunks) {
    const bool idle = chunk.map != nullptr && chunk.use == HostChunk::Use::kEvents;
    if (!idle || &chunk == in_use || !chunk.complete()) continue;
    file.retired_events += chunk.capacity;
    release_chunk_memory(&chunk);
  }
}

// A new chunk at the end of the file, ready for use, or null (and the process is off).
HostChunk* make_chunk_locked(int descriptor) {
  HostChunk* chunk = free_chunk_descriptor();
  if (chunk == nullptr) {
    fail("output-failed", ENOMEM);
    return nullptr;
  }
  const uint64_t begin = file.end_bytes;
  const uint32_t capacity =
      (file.next_chunk_bytes - static_cast<uint32_t>(chunk_prefix_bytes(begin))) /
      static_cast<uint32_t>(sizeof(HostRecord));
  const size_t packet_bytes = chunk_packet_bytes(begin, capacity);
  if (!may_grow(packet_bytes)) return nullptr;

  int error = kNotMappable;
  if (!g_append_sink) error = map_chunk(chunk, descriptor, begin, capacity);
  if (error == kNotMappable) {
    g_append_sink = true;
    error = file.append.keep(descriptor);
    if (error == 0) error = keep_chunk_in_memory(chunk, descriptor, begin, capacity);
    if (error != 0) cut_at_end_locked(descriptor);
  }
  if (error != 0) {
    fail_to_grow(error);
    return nullptr;
  }
  file.end_bytes = begin + packet_bytes;
  if (file.next_chunk_bytes < kLargestChunkBytes) file.next_chunk_bytes *= 2;
  chunk->open(capacity);
  return chunk;
}

// The largest chunk that was moved away, ready for use; null: none.
HostChunk* reuse_chunk_locked() {
  HostChunk* found = nullptr;
  for (HostChunk& chunk : file.chunks) {
    if (chunk.map == nullptr || chunk.use != HostChunk::Use::kEmpty) continue;
    if (found == nullptr || chunk.capacity > found->capacity) found = &chunk;
  }
  if (found != nullptr) {
    found->use = HostChunk::Use::kEvents;
    found->open(found->capacity);
  }
  return found;
}

HostChunk* make_chunk_in_file_locked() {
  const int descriptor = open_same_file(file.path, file.file);
  if (descriptor < 0) {
    fail_to_grow(-descriptor);
    return nullptr;
  }
  HostChunk* chunk = make_chunk_locked(descriptor);
  close(descriptor);
  return chunk;
}

bool write_header(int descriptor) {
  void* memory =
      mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail("output-failed", ENOMEM);
    return false;
  }
  WireWriter out(static_cast<uint8_t*>(memory), kHeaderBytes);
  write_header_packet(out);
  bool kept = out.ok() && may_grow(out.size());
  if (kept) {
    const int error = append_locked(descriptor, out.data(), out.size());
    if (error != 0) {
      fail_to_grow(error);
      kept = false;
    }
  }
  munmap(memory, kHeaderBytes);
  return kept;
}

// The first event of this process: forgets what a parent had, makes the file. False: off.
bool begin_process() {
  ProcessLock lock;
  if (state() != ProcessState::kNew) return state() == ProcessState::kRecording;
  // The parent's mappings are not in a forked child (MADV_DONTFORK); its private ones are.
  for (HostChunk& chunk : file.chunks) {
    if (g_append_sink) release_chunk_memory(&chunk);
    chunk.map = nullptr;
    chunk.close();
  }
  packer = nullptr;  // the parent's may have been at work
  moving.store(false, std::memory_order_relaxed);
  file.append.forget_inherited(file.file);
  current_chunk.store(nullptr, std::memory_order_relaxed);
  spare_chunk.store(nullptr, std::memory_order_relaxed);
  file.path[0] = '\0';
  file.end_bytes = 0;
  file.next_chunk_bytes = kFirstChunkBytes;
  file.retired_events = 0;
  file.first_event_ns = monotonic_ns();
  file.names.clear();
  g_append_sink = configuration.force_append_sink;
  generation.fetch_add(1, std::memory_order_relaxed);

  const int descriptor =
      make_trace_file(configuration.directory, identity().host, file.path, &file.file);
  if (descriptor < 0) {
    fail_to_grow(-descriptor);
    return false;
  }
  if (needs_append_sink(descriptor)) g_append_sink = true;
  HostChunk* chunk = write_header(descriptor) ? make_chunk_locked(descriptor) : nullptr;
  close(descriptor);
  if (chunk == nullptr) return false;
  current_chunk.store(chunk, std::memory_order_release);
  set_state(ProcessState::kRecording);
  return true;
}

// `full` has no room: the next chunk becomes the current one. False: off.
bool advance(const HostChunk* full) {
  ProcessLock lock;
  if (state() != ProcessState::kRecording) return false;
  if (current_chunk.load(std::memory_order_relaxed) != full) return true;  // somebody did
  HostChunk* chunk = spare_chunk.exchange(nullptr, std::memory_order_acquire);
  if (chunk == nullptr) chunk = reuse_chunk_locked();
  if (chunk == nullptr) {
    retire_complete_chunks(full);
    chunk = make_chunk_in_file_locked();
    if (chunk == nullptr) return false;
  }
  current_chunk.store(chunk, std::memory_order_release);
  return true;
}

bool recording() {
  const ProcessState now = state();
  if (now == ProcessState::kRecording) return true;
  return now == ProcessState::kNew && begin_process();
}

uint32_t thread_id() {
  const uint32_t now = generation.load(std::memory_order_relaxed);
  if (this_thread.generation != now) {
    this_thread.id = static_cast<uint32_t>(syscall(SYS_gettid));
    this_thread.generation = now;
  }
  return this_thread.id;
}

uint32_t add_name_locked(const char* text, size_t size) {
  const NameTable::Answer answer = file.names.find_or_add(text, size);
  if (!answer.is_new) return answer.id;
  uint8_t packet[kMaxNameBytes + 64];
  WireWriter out(packet, sizeof packet);
  const size_t names = out.begin(7);
  const size_t entry = out.begin(1);
  out.uint_field(1, answer.id);
  out.bytes_field(2, text, size);
  out.end(entry);
  out.end(names);
  const int descriptor = open_same_file(file.path, file.file);
  int error = descriptor < 0 ? -descriptor : 0;
  if (error == 0 && may_grow(out.size() + kPacketPrefixBytes)) {
    error = append_locked(descriptor, out.data(), out.size());
  } else if (error == 0) {
    error = EFBIG;  // already reported
  }
  if (descriptor >= 0) close(descriptor);
  if (error == 0) return answer.id;
  file.names.drop_newest();
  if (state() == ProcessState::kRecording) fail_to_grow(error);
  return 0;
}

// One full chunk, if there is one, becomes a compressed packet; its place is emptied for new
// events. The copy is in the file before the first record is emptied: a kill in between leaves
// both, and the reader takes one (trace.proto, HostChunk.moved_from).
void move_full_chunk() {
  if (g_append_sink || moving.exchange(true, std::memory_order_acquire)) return;
  // malloc: `new` is of libstdc++, which the recorder does without. Not under the lock, for which
  // application threads wait.
  ChunkPacker* made = packer;
  if (made == nullptr) {
    void* memory = malloc(sizeof(ChunkPacker));
    if (memory != nullptr) made = new (memory) ChunkPacker();
  }
  HostChunk* full = nullptr;
  {
    ProcessLock lock;
    packer = made;
    const HostChunk* in_use = current_chunk.load(std::memory_order_relaxed);
    for (HostChunk& chunk : file.chunks) {
      if (packer == nullptr || full != nullptr) break;
      const bool has_events = chunk.map != nullptr && chunk.use == HostChunk::Use::kEvents;
      if (!has_events || &chunk == in_use || !chunk.complete()) continue;
      chunk.use = HostChunk::Use::kBeingMoved;
      full = &chunk;
    }
  }
  if (full != nullptr) {
    const bool moved = packer->pack(full->records, full->capacity, full->records_offset) &&
                       append_packet(packer->data(), packer->size());
    if (moved) {
      for (uint32_t i = 0; i < full->capacity; ++i) {
        full->records[i].commit.store(0, std::memory_order_relaxed);
      }
    }
    ProcessLock lock;
    if (moved) {
      file.retired_events += full->capacity;
      full->close();
    }
    full->use = moved ? HostChunk::Use::kEmpty : HostChunk::Use::kEvents;
  }
  moving.store(false, std::memory_order_release);
}

}  // namespace

void configure_trace_file(const FileOptions& options, FailureReport report) {
  make_fork_page();
  const size_t length = strnlen(options.directory, kMaxPathBytes);
  if (length == 0 || length == kMaxPathBytes) return;
  memcpy(configuration.directory, options.directory, length + 1);
  configuration.max_size_bytes = options.max_size_bytes;
  configuration.force_append_sink = options.force_append_sink;
  configuration.report = report;
  configuration.present = true;
  set_state(ProcessState::kNew);
}

HostRecord* reserve_host_record() {
  for (;;) {
    if (!recording()) return nullptr;
    HostChunk* chunk = current_chunk.load(std::memory_order_acquire);
    HostRecord* record = chunk->take();
    if (record != nullptr) [[likely]] {
      record->thread_id = thread_id();
      return record;
    }
    if (!advance(chunk)) return nullptr;
  }
}

void write_host_record(HostRecord* record) {
  for (const HostChunk& chunk : file.chunks) {
    if (chunk.map == nullptr || record < chunk.records ||
        record >= chunk.records + chunk.capacity) {
      continue;
    }
    const uint64_t offset =
        chunk.records_offset + static_cast<uint64_t>(record - chunk.records) * sizeof(HostRecord);
    const int error = file.append.write(file.path, file.file, record, sizeof *record, offset);
    if (error != 0 && state() == ProcessState::kRecording) fail_to_grow(error);
    return;
  }
}

bool append_packet(const uint8_t* body, size_t size) {
  if (!recording()) return false;
  uint64_t at = 0;
  uint8_t prefix[kPacketPrefixBytes];
  prefix[0] = 0x0A;
  const size_t prefix_bytes = static_cast<size_t>(put_varint(prefix + 1, size) - prefix);
  int descriptor = -1;
  int error = 0;
  {
    ProcessLock lock;
    if (state() != ProcessState::kRecording) return false;
    if (!may_grow(prefix_bytes + size)) return false;
    descriptor = open_same_file(file.path, file.file);
    if (descriptor < 0) {
      fail_to_grow(-descriptor);
      return false;
    }
    // Only the length is written under the lock: application threads may wait for it. What
    // follows this packet stays readable even if we are killed before its body is written.
    at = file.end_bytes;
    error = write_all_at(descriptor, prefix, prefix_bytes, at);
    if (error == 0 && !g_append_sink) {
      error = allocate_range(descriptor, at, prefix_bytes + size);
      if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) error = 0;
    }
    if (error == 0) {
      file.end_bytes = at + prefix_bytes + size;
    } else {
      cut_at_end_locked(descriptor);
    }
  }
  if (error == 0) error = write_all_at(descriptor, body, size, at + prefix_bytes);
  close(descriptor);
  if (error != 0 && state() == ProcessState::kRecording) fail_to_grow(error);
  return error == 0;
}

uint32_t name_id(const char* text, size_t size) {
  if (text == nullptr || size == 0) return 0;
  char clean[kMaxNameBytes];
  const size_t length = utf8_copy(clean, sizeof clean, text, size);
  if (length == 0 || !recording()) return 0;
  ProcessLock lock;
  if (state() != ProcessState::kRecording) return 0;
  return add_name_locked(clean, length);
}

void prepare_host_chunk() {
  if (state() != ProcessState::kRecording) return;
  move_full_chunk();
  const HostChunk* chunk = current_chunk.load(std::memory_order_acquire);
  if (chunk == nullptr || !chunk->half_full() ||
      spare_chunk.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  ProcessLock lock;
  if (state() != ProcessState::kRecording || spare_chunk.load(std::memory_order_relaxed)) return;
  HostChunk* spare = reuse_chunk_locked();
  if (spare == nullptr) {
    retire_complete_chunks(current_chunk.load(std::memory_order_relaxed));
    spare = make_chunk_in_file_locked();
  }
  if (spare != nullptr) spare_chunk.store(spare, std::memory_order_release);
}

uint32_t file_generation() {
  // A new process that has not had an event yet will get the next number at its first one.
  return generation.load(std::memory_order_relaxed) + (state() == ProcessState::kNew ? 1 : 0);
}

bool recording_possible() { return configuration.present && state() != ProcessState::kOff; }

void stop_recording() { set_state(ProcessState::kOff); }

void stop_recording_of_job() {
  if (configuration.present) end_job_recording(configuration.directory, identity().host);
  stop_recording();
}

bool resume_recording() {
  if (!configuration.present) return false;
  ProcessLock lock;
  if (state() == ProcessState::kOff) {
    set_state(current_chunk.load(std::memory_order_relaxed) != nullptr ? ProcessState::kRecording
                                                                       : ProcessState::kNew);
  }
  return true;
}

FileStatistics file_statistics() {
  ProcessLock lock;
  FileStatistics facts{file.end_bytes, file.retired_events, file.first_event_ns};
  for (const HostChunk& chunk : file.chunks) {
    if (chunk.map != nullptr) facts.host_events += chunk.used();
  }
  return facts;
}

uint64_t file_bytes_unlocked() { return file.end_bytes; }

const char* trace_path() { return state() == ProcessState::kNew ? "" : file.path; }

}  // namespace idlescope::emit
