// The text of a file in pieces, inflated on the way if it is gzip.
//
// In: the bytes of a plain or gzip file (several gzip members are one text), at once or piece by
// piece. Out: pieces of the text, in order, with a limit on how much a small file may expand to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace idlescope::read {

// Real profiles expand 10 to 60 times; deflate can reach 1032. Past this a file is refused.
inline constexpr uint64_t kMaxInflateRatio = 200;
inline constexpr uint64_t kMaxInflateFreeBytes = uint64_t{64} << 20;

class TextStream {
 public:
  // Fills up to `size` bytes, returns how many; 0 at the end.
  using Source = std::function<size_t(char* out, size_t size)>;
  TextStream(Source source, uint64_t source_bytes);
  explicit TextStream(std::string_view bytes);  // which must outlive this
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // Fills up to `size` bytes; 0 at the end.
  size_t read(char* out, size_t size);

  enum class End {
    kNotYet,
    kComplete,
    kTruncated,  // the gzip stream stops early
    kDamaged,    // the gzip stream is not valid from here on
    kBomb,       // expands past the limit
  };
  End end() const { return end_; }
  uint64_t delivered() const { return delivered_; }

 private:
  struct Inflater;

  size_t read_plain(char* out, size_t size);
  size_t read_gzip(char* out, size_t size);

  // Bytes of the source that were read and not used yet; refilled when they are fewer than two
  // (the length of gzip's mark).
  std::string_view ahead();

  Source source_;
  uint64_t source_bytes_;
  std::string buffer_;
  size_t at_ = 0;
  size_t end_of_buffer_ = 0;
  bool source_ended_ = false;
  uint64_t delivered_ = 0;
  End end_ = End::kNotYet;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace idlescope::read
