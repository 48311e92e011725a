// Makes the data loading of a LibTorch (or any C++) training loop visible. Header-only, C++17;
// includes no Torch header and works with any loader that has begin() and end().
//
//   auto data = idlescope::followed_dataset(                     // time in get_batch();
//       MyDataset().map(torch::data::transforms::Stack<>()));    // the outermost of all
//   auto loader = torch::data::make_data_loader(std::move(data), options);
//   for (auto& batch : idlescope::followed(*loader)) {           // time in the loader
//     ...
//   }
//
// The first batch of a LibTorch loader is made in the first comparison or dereference of its
// iterator, not in begin() or ++: all of them are timed. Without the recorder the adaptors
// cost one test of a null pointer.
#ifndef IDLESCOPE_LOADER_H_
#define IDLESCOPE_LOADER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

extern "C" {
__attribute__((weak)) void idlescope_loader_event(uint32_t kind, int64_t begin_ns, uint32_t loader,
                                                  int64_t batch, int64_t a, int64_t b, int64_t c);
}

namespace idlescope {
namespace loader_detail {

// HostEventKind of trace.proto.
inline constexpr uint32_t kCreate = 1;
inline constexpr uint32_t kNext = 2;
inline constexpr uint32_t kWait = 3;
inline constexpr uint32_t kEnd = 4;
inline constexpr uint32_t kFetch = 34;

inline int64_t now_ns() noexcept {
  // CLOCK_MONOTONIC on Linux.
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Loaders of linked programs count down from the top, out of the way of the ones that the
// recorder numbers itself.
inline uint32_t next_loader() noexcept {
  static std::atomic<uint32_t> last{0x80000000u};
  return --last;
}

inline bool followed() noexcept { return idlescope_loader_event != nullptr; }

// The time that a loop spent in the loader for one batch: from the end of the loop's body to
// the batch in hand.
class Turn {
 public:
  explicit Turn(uint32_t loader) : loader_(loader) {}

  template <typename Work>
  decltype(auto) timed(Work&& work) {
    if (!followed()) return work();
    const int64_t begin = now_ns();
    if (begin_ns_ == 0) begin_ns_ = begin;
    return work();
  }
  void delivered() noexcept {
    if (!followed() || begin_ns_ == 0) return;
    idlescope_loader_event(kWait, begin_ns_, loader_, batch_, 0, 0, 0);
    idlescope_loader_event(kNext, begin_ns_, loader_, batch_, -1, -1, 0);
    begin_ns_ = 0;
    ++batch_;
  }
  void ended() noexcept {
    if (!followed()) return;
    idlescope_loader_event(kEnd, begin_ns_, loader_, -1, -1, -1, 0);
    begin_ns_ = 0;
  }

 private:
  uint32_t loader_;
  int64_t begin_ns_ = 0;
  int64_t batch_ = 0;
};

}  // namespace loader_detail

// A range over `loader`'s batches whose iterators tell the recorder what they wait for. The
// loader must outlive it.
template <typename Loader>
class FollowedLoader {
  using Inner = decltype(std::declval<Loader&>().begin());
  using InnerEnd = decltype(std::declval<Loader&>().end());

 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using reference = decltype(*std::declval<Inner&>());
    using value_type = std::decay_t<reference>;
    using pointer = value_type*;

    Iterator(Inner inner, loader_detail::Turn* turn) : inner_(std::move(inner)), turn_(turn) {}

    reference operator*() {
      if (in_hand_) return *inner_;
      return turn_->timed([this]() -> reference {
        reference batch = *inner_;
        arrived();
        return batch;
      });
    }
    Iterator& operator++() {
      in_hand_ = false;
      turn_->timed([this] { ++inner_; });
      return *this;
    }
    bool is_at(const InnerEnd& end) const {
      const bool at_end = turn_->timed([&] { return inner_ == end; });
      if (at_end) {
        turn_->ended();
      } else if (!in_hand_) {
        arrived();
      }
      return at_end;
    }

   private:
    void arrived() const {
      in_hand_ = true;
      turn_->delivered();
    }

    // A LibTorch iterator makes its batch while it is compared, and g++ compares a const one
    // in a range-based for loop.
    mutable Inner inner_;
    loader_detail::Turn* turn_;
    mutable bool in_hand_ = false;
  };

  class Sentinel {
   public:
    explicit Sentinel(InnerEnd end) : end_(std::move(end)) {}
    friend bool operator!=(const Iterator& at, const Sentinel& end) { return !at.is_at(end.end_); }
    friend bool operator==(const Iterator& at, const Sentinel& end) { return at.is_at(end.end_); }

   private:
    InnerEnd end_;
  };

  explicit FollowedLoader(Loader& loader)
      : loader_(loader), number_(loader_detail::next_loader()), turn_(number_) {}

  Iterator begin() {
    const int64_t begin_ns = loader_detail::now_ns();
    Inner inner = loader_.begin();
    if (loader_detail::followed()) {
      idlescope_loader_event(loader_detail::kCreate, begin_ns, number_, -1, -1, -1, 0);
    }
    return Iterator(std::move(inner), &turn_);
  }
  Sentinel end() { return Sentinel(loader_.end()); }

 private:
  Loader& loader_;
  uint32_t number_;
  loader_detail::Turn turn_;
};

template <typename Loader>
FollowedLoader<Loader> followed(Loader& loader) {
  return FollowedLoader<Loader>(loader);
}

// A dataset whose get_batch() is timed, on whatever thread the loader calls it.
template <typename Dataset>
class FollowedDataset : public Dataset {
 public:
  explicit FollowedDataset(Dataset dataset) : Dataset(std::move(dataset)) {}

  template <typename Request>
  auto get_batch(Request&& request) {
    const int64_t begin_ns = loader_detail::now_ns();
    auto batch = Dataset::get_batch(std::forward<Request>(request));
    if (loader_detail::followed()) {
      idlescope_loader_event(loader_detail::kFetch, begin_ns, 0, -1, -1, 0, -1);
    }
    return batch;
  }
};

template <typename Dataset>
FollowedDataset<Dataset> followed_dataset(Dataset dataset) {
  return FollowedDataset<Dataset>(std::move(dataset));
}

}  // namespace idlescope

#endif  // IDLESCOPE_LOADER_H_
