// Protobuf wire format into memory that the caller owns.
//
// In: field numbers and values. Out: encoded bytes in the caller's span. A write that does
// not fit sets ok() to false and writes nothing more; the caller then drops or splits.
// Runs on any thread, also inside CUDA callbacks: no allocation, no lock, no exception, no
// C++ runtime. Nested messages get a length of four bytes that is filled in afterwards
// (a padded varint, which protobuf parsers accept; proto/README.md, "Framing").
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace idlescope::emit {

// proto's sint32/sint64 mapping: 0, -1, 1, -2 … become 0, 1, 2, 3 …
constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

// Bytes that `value` takes as a varint, 1 to 10.
constexpr size_t varint_size(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

// Writes the varint at `out`, which has room for it; returns the byte after it.
inline uint8_t* put_varint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Writes `value` as a varint of exactly `width` bytes (continuation bytes of value 0).
// `value` must be below 2^(7*width).
inline void put_padded_varint(uint8_t* out, uint64_t value, size_t width) {
  for (size_t i = 0; i + 1 < width; ++i) {
    out[i] = static_cast<uint8_t>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out[width - 1] = static_cast<uint8_t>(value);
}

class WireWriter {
 public:
  static constexpr size_t kLengthBytes = 4;
  static constexpr size_t kMaxNestedBytes = (size_t{1} << (7 * kLengthBytes)) - 1;

  WireWriter(uint8_t* data, size_t capacity) : data_(data), capacity_(capacity) {}

  bool ok() const { return ok_; }
  size_t size() const { return size_; }
  size_t room() const { return ok_ ? capacity_ - size_ : 0; }
  const uint8_t* data() const { return data_; }
  void reset() {
    size_ = 0;
    ok_ = true;
  }

  // Scalars. The value 0 is written too: proto3 readers take it as the default, and an
  // explicit element of a oneof needs it.
  void uint_field(uint32_t field, uint64_t value) {
    raw_varint(tag(field, 0));
    raw_varint(value);
  }
  // int32, int64, enum: negative values take ten bytes.
  void int_field(uint32_t field, int64_t value) { uint_field(field, static_cast<uint64_t>(value)); }
  void sint_field(uint32_t field, int64_t value) { uint_field(field, zigzag(value)); }
  void bool_field(uint32_t field, bool value) { uint_field(field, value ? 1 : 0); }
  void double_field(uint32_t field, double value) {
    raw_varint(tag(field, 1));
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    uint8_t little[8];
    for (size_t i = 0; i < 8; ++i) little[i] = static_cast<uint8_t>(bits >> (8 * i));
    raw_bytes(little, sizeof little);
  }
  // Skips the default value, for the many optional fields of a message.
  void uint_field_if(uint32_t field, uint64_t value) {
    if (value != 0) uint_field(field, value);
  }
  void int_field_if(uint32_t field, int64_t value) {
    if (value != 0) int_field(field, value);
  }

  void bytes_field(uint32_t field, const void* bytes, size_t size) {
    raw_varint(tag(field, 2));
    raw_varint(size);
    raw_bytes(bytes, size);
  }
  // The caller gives valid UTF-8 (see utf8_copy in name_table.h for foreign text).
  void string_field(uint32_t field, const char* text) {
    if (text != nullptr && *text != '\0') bytes_field(field, text, strlen(text));
  }

  // A nested message or a packed repeated field: what is written between begin and end is
  // its content. Returns what end() wants.
  size_t begin(uint32_t field) {
    raw_varint(tag(field, 2));
    const size_t mark = size_;
    static constexpr uint8_t kZero[kLengthBytes] = {};
    raw_bytes(kZero, kLengthBytes);
    return mark;
  }
  void end(size_t mark) {
    if (!ok_) return;
    const size_t length = size_ - mark - kLengthBytes;
    if (length > kMaxNestedBytes) {
      ok_ = false;
      return;
    }
    put_padded_varint(data_ + mark, length, kLengthBytes);
  }

  // Elements of a packed field, between begin and end.
  void raw_varint(uint64_t value) {
    if (!ok_ || capacity_ - size_ < varint_size(value)) {
      ok_ = false;
      return;
    }
    size_ = static_cast<size_t>(put_varint(data_ + size_, value) - data_);
  }
  void raw_bytes(const void* bytes, size_t size) {
    if (!ok_ || capacity_ - size_ < size) {
      ok_ = false;
      return;
    }
    if (size != 0) memcpy(data_ + size_, bytes, size);
    size_ += size;
  }

 private:
  static constexpr uint64_t tag(uint32_t field, uint32_t wire_type) {
    return (uint64_t{field} << 3) | wire_type;
  }

  uint8_t* data_;
  size_t capacity_;
  size_t size_ = 0;
  bool ok_ = true;
};

}  // namespace idlescope::emit
