// An array of trivially copyable elements that grows with realloc and reports failure.
//
// Stands in for std::vector in the injected library, which uses no exceptions and no C++
// runtime. Drain thread only: application threads never grow anything.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>

namespace idlescope::emit {

template <typename T>
class GrowArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowArray() = default;
  ~GrowArray() { free(data_); }
  GrowArray(const GrowArray&) = delete;
  GrowArray& operator=(const GrowArray&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  void clear() { size_ = 0; }

  // False: no memory; the array is unchanged.
  [[nodiscard]] bool reserve(size_t capacity) {
    if (capacity <= capacity_) return true;
    size_t larger = capacity_ < 16 ? 16 : capacity_ * 2;
    if (larger < capacity) larger = capacity;
    void* data = realloc(static_cast<void*>(data_), larger * sizeof(T));
    if (data == nullptr) return false;
    data_ = static_cast<T*>(data);
    capacity_ = larger;
    return true;
  }
  [[nodiscard]] bool push_back(const T& value) {
    if (size_ == capacity_ && !reserve(size_ + 1)) return false;
    data_[size_++] = value;
    return true;
  }
  // New elements are not initialised.
  [[nodiscard]] bool resize(size_t size) {
    if (!reserve(size)) return false;
    size_ = size;
    return true;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace idlescope::emit
