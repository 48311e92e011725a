// A CUDA 12 application in miniature: libcudart.so.12 loads PTX, launches, copies, waits.
//
// Host code only, so that any compiler can build it against the CUDA 12 headers of the
// nvidia-cuda-runtime-cu12 wheel: g++ -O2 cuda12_job.cpp -I…/include …/lib/libcudart.so.12
// Usage: cuda12_job STEPS. Out: one line; the recorder's trace is checked by value.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace {

const char kPtx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry scale(.param .u64 p) {\n"
    " .reg .u64 %rd<4>; .reg .u32 %r<2>; .reg .f32 %f<3>;\n"
    " ld.param.u64 %rd1, [p];\n cvta.to.global.u64 %rd2, %rd1;\n mov.u32 %r1, %tid.x;\n"
    " mul.wide.u32 %rd3, %r1, 4;\n add.u64 %rd2, %rd2, %rd3;\n ld.global.f32 %f1, [%rd2];\n"
    " add.f32 %f2, %f1, 0f3F800000;\n st.global.f32 [%rd2], %f2;\n ret;\n}\n";

bool good(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 100;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  cudaStream_t stream;
  float* device;
  float* host;
  if (!good(cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0), "load") ||
      !good(cudaLibraryGetKernel(&kernel, library, "scale"), "kernel") ||
      !good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream") ||
      !good(cudaMalloc(reinterpret_cast<void**>(&device), 1 << 20), "malloc") ||
      !good(cudaMallocHost(reinterpret_cast<void**>(&host), 1 << 20), "host")) {
    return 1;
  }
  for (int i = 0; i < 256; ++i) host[i] = 0;
  cudaMemcpyAsync(device, host, 1024, cudaMemcpyHostToDevice, stream);
  for (int step = 0; step < steps; ++step) {
    void* arguments[] = {&device};
    for (int i = 0; i < 10; ++i) {
      if (!good(cudaLaunchKernel(reinterpret_cast<void*>(kernel), dim3(1), dim3(256), arguments, 0, stream), "launch")) return 1;
    }
    cudaMemcpyAsync(host, device, 1024, cudaMemcpyDeviceToHost, stream);
    if (!good(cudaStreamSynchronize(stream), "synchronize")) return 1;
  }
  int version = 0;
  cudaRuntimeGetVersion(&version);
  printf("runtime %d: %d steps, value %.0f expected %d\n", version, steps, host[7], steps * 10);
  return host[7] == static_cast<float>(steps * 10) ? 0 : 1;
}
