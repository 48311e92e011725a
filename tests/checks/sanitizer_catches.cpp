// A bug on purpose, to show that the sanitizer of this build would tell us.
//
// Usage: sanitizer_catches use-after-free|overflow|race. The test passes if the report is
// printed; a build whose flags got lost prints nothing and fails.
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

namespace {

int use_after_free() {
  volatile int* freed = new int(1);
  delete freed;
  return *freed;
}

int overflow() {
  volatile int large = std::numeric_limits<int>::max();
  return large + 1;
}

int race() {
  int shared = 0;
  std::thread other([&shared] { shared = 1; });
  shared = 2;
  other.join();
  return shared;
}

}  // namespace

int main(int argc, char** argv) {
  const char* bug = argc > 1 ? argv[1] : "";
  int result = -1;
  if (std::strcmp(bug, "use-after-free") == 0) result = use_after_free();
  if (std::strcmp(bug, "overflow") == 0) result = overflow();
  if (std::strcmp(bug, "race") == 0) result = race();
  std::printf("not caught: %s, %d\n", bug, result);
  return 0;
}
