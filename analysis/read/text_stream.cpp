#include "analysis/read/text_stream.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace idlescope::read {

struct TextStream::Inflater {
  z_stream stream{};
  bool open = false;
  ~Inflater() {
    if (open) inflateEnd(&stream);
  }
};

TextStream::TextStream(std::string_view bytes) : bytes_(bytes) {
  if (bytes.substr(0, 2) == "\x1F\x8B") {
    inflater_ = std::make_unique<Inflater>();
    // 15: the largest window; +16: gzip, not zlib.
    inflater_->open = inflateInit2(&inflater_->stream, 15 + 16) == Z_OK;
    if (!inflater_->open) end_ = End::kDamaged;
  }
}

TextStream::~TextStream() = default;

size_t TextStream::read(char* out, size_t size) {
  if (end_ != End::kNotYet || size == 0) return 0;
  const size_t got = inflater_ ? read_gzip(out, size) : read_plain(out, size);
  delivered_ += got;
  if (inflater_ && delivered_ > kMaxInflateFreeBytes + kMaxInflateRatio * bytes_.size()) {
    end_ = End::kBomb;
    return 0;
  }
  return got;
}

size_t TextStream::read_plain(char* out, size_t size) {
  const size_t got = std::min(size, bytes_.size() - at_);
  std::memcpy(out, bytes_.data() + at_, got);
  at_ += got;
  if (got == 0) end_ = End::kComplete;
  return got;
}

size_t TextStream::read_gzip(char* out, size_t size) {
  z_stream& stream = inflater_->stream;
  // zlib's input pointer is not const for historical reasons; it does not write there.
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(std::min<size_t>(size, UINT_MAX));
  const size_t room = stream.avail_out;
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min<size_t>(bytes_.size() - at_, size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + at_));
      stream.avail_in = static_cast<uInt>(piece);
      at_ += piece;
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      const std::string_view rest = bytes_.substr(at_ - stream.avail_in);
      if (rest.substr(0, 2) == "\x1F\x8B" && inflateReset(&stream) == Z_OK) continue;
      end_ = End::kComplete;  // zero padding after the last member is common
      break;
    }
    if (result == Z_BUF_ERROR && at_ == bytes_.size()) {
      end_ = End::kTruncated;
      break;
    }
    if (result != Z_OK) {
      end_ = End::kDamaged;
      break;
    }
  }
  return room - stream.avail_out;
}

}  // namespace idlescope::read
