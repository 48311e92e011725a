// A training loop without a GPU: what an application does, over the fake libcupti.
//
// Usage: launch_program STEPS KERNELS_PER_STEP THREADS [leave | windows | paced | silent]
// In: LD_PRELOAD of the library under test. Out: the usual trace file; on stdout one line
// with what the fake traced, which the test compares with the file. `leave`: ends by _exit.
// `windows`: opens and closes windows through the C API meanwhile. `paced`: marks the steps, of
// 5 ms each. `silent`: the same, but the marks stop after six steps, as where a CUDA graph takes
// over. Prints "ready" first then.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" {
void fake_launch(const char* name, long duration_ns, unsigned long stream);
void fake_copy(unsigned long bytes, int kind, unsigned long stream);
void fake_memset(unsigned long bytes, unsigned long stream);
void fake_synchronize(unsigned long stream);
int fake_attached();
unsigned long fake_kernels_traced();
unsigned long fake_finalized();
}

namespace {

using Mark = void (*)();

// `mark`: called at the end of each of the first `marked` steps, which then take 5 ms.
void train(int steps, int kernels, unsigned long stream, Mark mark = nullptr, int marked = 0) {
  char name[64];
  for (int step = 0; step < steps; ++step) {
    fake_copy(1 << 20, 1, stream);
    fake_memset(4096, stream);
    for (int i = 0; i < kernels; ++i) {
      snprintf(name, sizeof name, "_Z6kernelILi%dEEvPf", i % 7);
      fake_launch(name, 3000, stream);
    }
    fake_synchronize(stream);
    if (marked == 0) continue;
    usleep(5000);
    if (step < marked && mark != nullptr) mark();
  }
}

// 20 ms open, 10 ms closed.
void steer(const std::atomic<bool>* stop) {
  const auto start = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "idlescope_start"));
  const auto end = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "idlescope_stop"));
  while (!*stop && start != nullptr) {
    start();
    usleep(20'000);
    end();
    usleep(10'000);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const int steps = atoi(arguments[1]);
  const int kernels = atoi(arguments[2]);
  const int threads = atoi(arguments[3]);
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(dlsym(RTLD_DEFAULT, "InitializeInjection"));
  if (initialize != nullptr) initialize();
  std::vector<std::thread> others;
  std::atomic<bool> stop{false};
  std::thread control;
  if (count > 4 && strcmp(arguments[4], "windows") == 0) control = std::thread(steer, &stop);
  for (int i = 1; i < threads; ++i) {
    others.emplace_back(train, steps, kernels, 0x100UL + static_cast<unsigned long>(i), nullptr, 0);
  }
  const bool silent = count > 4 && strcmp(arguments[4], "silent") == 0;
  if (silent || (count > 4 && strcmp(arguments[4], "paced") == 0)) {
    printf("ready\n");
    fflush(stdout);
    const auto mark = reinterpret_cast<Mark>(dlsym(RTLD_DEFAULT, "idlescope_step"));
    train(steps, kernels, 0, mark, silent ? 6 : steps);
  } else {
    train(steps, kernels, 0);
  }
  for (std::thread& thread : others) thread.join();
  stop = true;
  if (control.joinable()) control.join();
  printf("kernels %lu attached %d finalized %lu injected %d\n", fake_kernels_traced(),
         fake_attached(), fake_finalized(), initialize != nullptr ? 1 : 0);
  fflush(stdout);
  if (count > 4 && strcmp(arguments[4], "leave") == 0) _exit(0);
  return 0;
}
