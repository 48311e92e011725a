// A C++ job of the tests: NVTX ranges, idlescope/annotate.h, idlescope/loader.h. Prints the sum
// of its batches, which must not depend on the recorder.
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "profiler/include/idlescope/annotate.h"
#include "profiler/include/idlescope/loader.h"

namespace {

// Lazy like LibTorch's: the batch is made in the first == or *.
class Loader {
 public:
  class Iterator {
   public:
    explicit Iterator(int at) : at_(at) {}
    std::vector<int>& operator*() {
      fill();
      return batch_;
    }
    Iterator& operator++() {
      filled_ = false;
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) {
      if (at_ != other.at_) fill();
      return at_ == other.at_;
    }

   private:
    void fill() {
      if (filled_) return;
      usleep(2000);
      batch_.assign(4, at_);
      filled_ = true;
    }
    int at_;
    bool filled_ = false;
    std::vector<int> batch_;
  };
  Iterator begin() { return Iterator(0); }
  Iterator end() { return Iterator(5); }
};

struct Data {
  int get_batch(int size) { return size * 2; }
};

void nvtx() {
  nvtxRangePushA("outer");
  nvtxRangePushA("inner");
  usleep(1000);
  nvtxRangePop();
  nvtxMarkA("a mark");
  nvtxRangePop();
  nvtxRangePop();  // none is open
  const nvtxRangeId_t id = nvtxRangeStartA("across threads");
  std::thread([id] { nvtxRangeEnd(id); }).join();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("ours");
  nvtxEventAttributes_t event;
  memset(&event, 0, sizeof event);
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
  nvtxRangePushW(L"größe");
  nvtxRangePop();
  for (int depth = 0; depth < 40; ++depth) nvtxRangePushA("deep");
  for (int depth = 0; depth < 40; ++depth) nvtxRangePop();
}

}  // namespace

int main() {
  nvtx();
  long sum = 0;
  Loader loader;
  for (std::vector<int>& batch : idlescope::followed(loader)) {
    IDLESCOPE_RANGE("body");
    for (int value : batch) sum += value;
    IDLESCOPE_STEP();
  }
  auto data = idlescope::followed_dataset(Data{});
  sum += data.get_batch(3);
  printf("%ld\n", sum);
  return 0;
}
