#include "tools/compact.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "proto/trace.pb.h"

namespace idlescope::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint8_t kPacketTag = 0x0A;             // Trace.packet, length-delimited
constexpr size_t kFrameBytes = size_t{1} << 20;  // uncompressed, about
constexpr uint64_t kLargestPacketBytes = uint64_t{1} << 30;
constexpr int kLevel = 3;

enum class Next { kPacket, kEnd, kDamaged };

// Packets of a file one by one. A run of zeros up to the end of the file is unused room.
class PacketStream {
 public:
  explicit PacketStream(const std::string& path) : in_(path, std::ios::binary) {}
  bool is_open() const { return in_.is_open(); }
  // Of the byte behind the last packet.
  uint64_t offset() const { return offset_; }

  Next next(std::string* body) {
    const int tag = in_.get();
    if (tag == EOF) return Next::kEnd;
    if (tag == 0) return only_zeros_left() ? Next::kEnd : Next::kDamaged;
    if (tag != kPacketTag) return Next::kDamaged;
    uint64_t size = 0;
    ++offset_;
    for (int shift = 0;; shift += 7) {
      const int byte = in_.get();
      ++offset_;
      if (byte == EOF || shift > 56) return Next::kDamaged;
      size |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) break;
    }
    if (size > kLargestPacketBytes) return Next::kDamaged;
    body->resize(size);
    in_.read(body->data(), static_cast<std::streamsize>(size));
    offset_ += size;
    return static_cast<uint64_t>(in_.gcount()) == size ? Next::kPacket : Next::kDamaged;
  }

 private:
  bool only_zeros_left() {
    std::vector<char> block(64 * 1024);
    for (;;) {
      in_.read(block.data(), static_cast<std::streamsize>(block.size()));
      const std::streamsize count = in_.gcount();
      if (std::any_of(block.begin(), block.begin() + count, [](char c) { return c != 0; })) {
        return false;
      }
      if (count == 0) return true;
    }
  }

  std::ifstream in_;
  uint64_t offset_ = 0;
};

void append_packet(std::string* out, const std::string& body) {
  *out += static_cast<char>(kPacketTag);
  uint64_t size = body.size();
  while (size >= 0x80) {
    *out += static_cast<char>(size | 0x80);
    size >>= 7;
  }
  *out += static_cast<char>(size);
  *out += body;
}

// The packet without padding and without records that were never committed; empty if
// nothing is left. `end_offset`: where the packet, and with it raw_events, ended in the file.
std::string trim_host_chunk(const trace::Packet& packet, uint64_t end_offset) {
  const trace::HostChunk& chunk = packet.host_chunk();
  const std::string& raw = chunk.raw_events();
  const size_t record = chunk.record_bytes();
  if (record < sizeof(uint32_t)) return packet.SerializeAsString();
  trace::Packet out;
  std::string& kept = *out.mutable_host_chunk()->mutable_raw_events();
  for (size_t at = 0; at + record <= raw.size(); at += record) {
    uint32_t commit = 0;
    std::memcpy(&commit, raw.data() + at, sizeof commit);
    if (commit != 0) kept.append(raw, at, record);
  }
  if (kept.empty()) return {};
  out.mutable_host_chunk()->set_record_bytes(chunk.record_bytes());
  out.mutable_host_chunk()->set_moved_from(chunk.moved_from());
  const bool moved = chunk.moved_from() != 0 || chunk.original_offset() != 0;
  out.mutable_host_chunk()->set_original_offset(moved ? chunk.original_offset()
                                                      : end_offset - raw.size());
  return out.SerializeAsString();
}

class FrameWriter {
 public:
  FrameWriter(std::FILE* file, ZSTD_CCtx* context) : file_(file), context_(context) {}

  bool add(const std::string& body) {
    append_packet(&pending_, body);
    return pending_.size() < kFrameBytes || flush();
  }
  bool add_plain(const std::string& body) {
    std::string framed;
    append_packet(&framed, body);
    return flush() && write(framed);
  }
  bool flush() {
    if (pending_.empty()) return true;
    trace::Packet packet;
    std::string& frame = *packet.mutable_zstd_trace();
    frame.resize(ZSTD_compressBound(pending_.size()));
    const size_t size = ZSTD_compressCCtx(context_, frame.data(), frame.size(), pending_.data(),
                                          pending_.size(), kLevel);
    if (ZSTD_isError(size) != 0) return false;
    frame.resize(size);
    pending_.clear();
    std::string framed;
    append_packet(&framed, packet.SerializeAsString());
    return write(framed);
  }

 private:
  bool write(const std::string& bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }

  std::FILE* file_;
  ZSTD_CCtx* context_;
  std::string pending_;
};

tl::expected<void, CompactError> copy_compacted(const std::string& from, std::FILE* to,
                                                ZSTD_CCtx* context) {
  PacketStream in(from);
  if (!in.is_open()) return tl::unexpected(CompactError::kFailed);
  FrameWriter out(to, context);
  std::string body;
  bool header_seen = false;
  for (;;) {
    const Next next = in.next(&body);
    if (next == Next::kDamaged) return tl::unexpected(CompactError::kDamaged);
    if (next == Next::kEnd) break;
    trace::Packet packet;
    if (!packet.ParseFromString(body)) return tl::unexpected(CompactError::kDamaged);
    bool written = true;
    if (packet.has_header() || packet.has_zstd_trace()) {
      header_seen = header_seen || packet.has_header();
      written = out.add_plain(body);
    } else if (packet.has_host_chunk()) {
      const std::string trimmed = trim_host_chunk(packet, in.offset());
      if (!trimmed.empty()) written = out.add(trimmed);
    } else {
      written = out.add(body);
    }
    if (!written) return tl::unexpected(CompactError::kFailed);
  }
  if (!header_seen) return tl::unexpected(CompactError::kDamaged);
  if (!out.flush()) return tl::unexpected(CompactError::kFailed);
  return {};
}

}  // namespace

tl::expected<Compacted, CompactError> compact_file(const std::string& path) {
  std::error_code error;
  Compacted result;
  result.before_bytes = fs::file_size(path, error);
  if (error) return tl::unexpected(CompactError::kFailed);
  const std::string temporary = path + ".compacting";
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
  if (file == nullptr) return tl::unexpected(CompactError::kFailed);
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  tl::expected<void, CompactError> copied = copy_compacted(path, file, context.get());
  if (std::fclose(file) != 0 && copied) copied = tl::unexpected(CompactError::kFailed);
  if (copied) {
    result.after_bytes = fs::file_size(temporary, error);
    if (!error && result.after_bytes < result.before_bytes) {
      fs::rename(temporary, path, error);
      if (!error) return result;
      copied = tl::unexpected(CompactError::kFailed);
    } else {
      result.after_bytes = result.before_bytes;  // already compact
    }
  }
  fs::remove(temporary, error);
  if (!copied) return tl::unexpected(copied.error());
  return result;
}

bool parse_trace_file_name(const std::string& name, TraceFileName* out) {
  constexpr std::string_view kEnd = ".istrace";
  std::string_view text(name);
  if (text.size() <= kEnd.size() || text.substr(text.size() - kEnd.size()) != kEnd) return false;
  text.remove_suffix(kEnd.size());
  // From the right: host names have dots too.
  uint64_t numbers[3] = {};
  for (int i = 2; i >= 0; --i) {
    const size_t dot = text.find_last_of('.');
    if (dot == text.npos || dot + 1 == text.size()) return false;
    const std::string_view part = text.substr(dot + 1);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), numbers[i]);
    if (error != std::errc() || end != part.data() + part.size()) return false;
    text = text.substr(0, dot);
  }
  if (text.empty()) return false;
  out->host = text;
  out->pid = static_cast<int64_t>(numbers[0]);
  out->start_ticks = numbers[1];
  out->image = static_cast<int>(numbers[2]);
  return true;
}

bool has_ended(const TraceFileName& name, const std::string& host) {
  if (name.host != host || name.pid <= 0) return false;
  if (kill(static_cast<pid_t>(name.pid), 0) != 0 && errno == ESRCH) return true;
  // proc(5), stat: field 22 is the start time; the command in field 2 may hold anything but
  // ends at the last parenthesis. A zombie has ended as far as its files are concerned.
  std::ifstream file(fmt::format("/proc/{}/stat", name.pid));
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t close = line.rfind(')');
  if (close == line.npos) return false;
  std::string rest = line.substr(close + 1);
  size_t at = 0;
  const auto field = [&]() -> std::string {
    at = rest.find_first_not_of(' ', at);
    if (at == rest.npos) return {};
    const size_t end = rest.find(' ', at);
    std::string word = rest.substr(at, end - at);
    at = end == rest.npos ? rest.size() : end;
    return word;
  };
  const std::string state = field();
  if (state == "Z" || state == "X") return true;
  std::string start;
  for (int number = 4; number <= 22; ++number) start = field();
  return !start.empty() && start != std::to_string(name.start_ticks);
}

Compactor::Compactor(std::string directory, std::string host)
    : directory_(std::move(directory)), host_(std::move(host)) {}

uint64_t Compactor::compact_ended() {
  uint64_t freed = 0;
  all_ended_ = true;
  std::vector<std::string> ended;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    TraceFileName parts;
    if (done_.count(name) != 0 || !parse_trace_file_name(name, &parts)) continue;
    if (has_ended(parts, host_)) {
      ended.push_back(name);
    } else {
      all_ended_ = false;
    }
  }
  for (const std::string& name : ended) {
    done_.insert(name);
    const auto compacted = compact_file(directory_ + "/" + name);
    if (compacted) freed += compacted->before_bytes - compacted->after_bytes;
  }
  if (freed > 0) give_back(freed);
  return freed;
}

// The recorder counts what all processes of a host have reserved in HOST.usage (one 64-bit
// counter, shared mapping) against --max-size; what compaction frees may be used again.
void Compactor::give_back(uint64_t bytes) {
  const std::string path = directory_ + "/" + host_ + ".usage";
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  std::error_code error;
  void* memory = MAP_FAILED;
  if (fs::file_size(path, error) >= sizeof(uint64_t) && !error) {
    memory = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  if (memory == MAP_FAILED) return;
  auto* used = static_cast<std::atomic<uint64_t>*>(memory);
  uint64_t before = used->load(std::memory_order_relaxed);
  while (!used->compare_exchange_weak(before, before - std::min(before, bytes),
                                      std::memory_order_relaxed)) {
  }
  munmap(memory, sizeof(uint64_t));
}

}  // namespace idlescope::tools
