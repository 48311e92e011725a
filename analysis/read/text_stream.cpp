#include "analysis/read/text_stream.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace idlescope::read {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr std::string_view kGzipMark = "\x1F\x8B";

}  // namespace

struct TextStream::Inflater {
  z_stream stream{};
  bool open = false;
  ~Inflater() {
    if (open) inflateEnd(&stream);
  }
};

TextStream::TextStream(Source source, uint64_t source_bytes)
    : source_(std::move(source)), source_bytes_(source_bytes), buffer_(kBufferBytes, '\0') {
  if (ahead().substr(0, 2) == kGzipMark) {
    inflater_ = std::make_unique<Inflater>();
    // 15: the largest window; +16: gzip, not zlib.
    inflater_->open = inflateInit2(&inflater_->stream, 15 + 16) == Z_OK;
    if (!inflater_->open) end_ = End::kDamaged;
  }
}

TextStream::TextStream(std::string_view bytes)
    : TextStream(
          [bytes](char* out, size_t size) mutable {
            const size_t got = std::min(size, bytes.size());
            std::memcpy(out, bytes.data(), got);
            bytes.remove_prefix(got);
            return got;
          },
          bytes.size()) {}

TextStream::~TextStream() = default;

std::string_view TextStream::ahead() {
  while (end_of_buffer_ - at_ < 2 && !source_ended_) {
    std::memmove(buffer_.data(), buffer_.data() + at_, end_of_buffer_ - at_);
    end_of_buffer_ -= at_;
    at_ = 0;
    const size_t got = source_(buffer_.data() + end_of_buffer_, kBufferBytes - end_of_buffer_);
    end_of_buffer_ += got;
    source_ended_ = got == 0;
  }
  return {buffer_.data() + at_, end_of_buffer_ - at_};
}

size_t TextStream::read(char* out, size_t size) {
  if (end_ != End::kNotYet || size == 0) return 0;
  const size_t got = inflater_ ? read_gzip(out, size) : read_plain(out, size);
  delivered_ += got;
  if (inflater_ && delivered_ > kMaxInflateFreeBytes + kMaxInflateRatio * source_bytes_) {
    end_ = End::kBomb;
    return 0;
  }
  return got;
}

size_t TextStream::read_plain(char* out, size_t size) {
  size_t got = std::min(size, end_of_buffer_ - at_);  // what the look at the beginning left
  if (got > 0) {
    std::memcpy(out, buffer_.data() + at_, got);
    at_ += got;
  } else {
    got = source_(out, size);
  }
  if (got == 0) end_ = End::kComplete;
  return got;
}

size_t TextStream::read_gzip(char* out, size_t size) {
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(std::min<size_t>(size, UINT_MAX));
  const size_t room = stream.avail_out;
  while (stream.avail_out > 0) {
    const std::string_view input = ahead();
    // zlib's input pointer is not const for historical reasons; it does not write there.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    at_ += input.size() - stream.avail_in;
    if (result == Z_STREAM_END) {
      if (ahead().substr(0, 2) == kGzipMark && inflateReset(&stream) == Z_OK) continue;
      end_ = End::kComplete;  // zero padding after the last member is common
      break;
    }
    if (result == Z_BUF_ERROR && source_ended_) {
      end_ = End::kTruncated;
      break;
    }
    if (result != Z_OK && result != Z_BUF_ERROR) {
      end_ = End::kDamaged;
      break;
    }
  }
  return room - stream.avail_out;
}

}  // namespace idlescope::read
