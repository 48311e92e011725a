// Names for parts of a program, seen in idlescope reports. Header-only, C++14, no dependency.
//
//   void forward() {
//     IDLESCOPE_RANGE("forward");        // until the end of the block
//     ...
//   }
//   IDLESCOPE_STEP();                    // a training step ends here
//
// Under `idlescope record` (or LD_PRELOAD) the calls reach the recorder; without it they cost
// one test of a null pointer. IDLESCOPE_DISABLE compiles them out.
#ifndef IDLESCOPE_ANNOTATE_H_
#define IDLESCOPE_ANNOTATE_H_

extern "C" {
// Of the recorder; weak, so that the program links and starts without it.
__attribute__((weak)) void idlescope_range_begin(const char* name);
__attribute__((weak)) void idlescope_range_end(void);
__attribute__((weak)) void idlescope_step(void);
}

namespace idlescope {

// A range that ends with its block.
class Range {
 public:
  explicit Range(const char* name) noexcept {
    if (idlescope_range_begin != nullptr) idlescope_range_begin(name);
  }
  ~Range() {
    if (idlescope_range_end != nullptr) idlescope_range_end();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

inline void step() noexcept {
  if (idlescope_step != nullptr) idlescope_step();
}

}  // namespace idlescope

#define IDLESCOPE_JOIN_(a, b) a##b
#define IDLESCOPE_JOIN(a, b) IDLESCOPE_JOIN_(a, b)
#ifdef IDLESCOPE_DISABLE
#define IDLESCOPE_RANGE(name) static_cast<void>(0)
#define IDLESCOPE_STEP() static_cast<void>(0)
#else
#define IDLESCOPE_RANGE(name) \
  const ::idlescope::Range IDLESCOPE_JOIN(idlescope_range_, __LINE__)(name)
#define IDLESCOPE_STEP() ::idlescope::step()
#endif

#endif  // IDLESCOPE_ANNOTATE_H_
