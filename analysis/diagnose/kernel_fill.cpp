#include "analysis/diagnose/kernel_fill.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <string>

namespace idlescope::diagnose {

double blocks_per_sm(const read::OpDescriptor& kernel, const trace::Device& device) {
  const double threads = static_cast<double>(kernel.block[0]) * kernel.block[1] * kernel.block[2];
  if (threads < 1 || device.max_threads_per_sm() == 0) return 0;
  double limit = std::floor(static_cast<double>(device.max_threads_per_sm()) / threads);
  if (device.max_blocks_per_sm() != 0) {
    limit = std::min(limit, static_cast<double>(device.max_blocks_per_sm()));
  }
  if (kernel.registers_per_thread != 0 && device.max_registers_per_sm() != 0) {
    // Registers are handed out per warp in units of 256 (CUDA occupancy calculator).
    const double warps = std::ceil(threads / 32);
    const double per_warp = std::ceil(kernel.registers_per_thread * 32.0 / 256) * 256;
    limit = std::min(limit, std::floor(device.max_registers_per_sm() / per_warp / warps));
  }
  if (kernel.shared_bytes != 0 && device.max_shared_bytes_per_sm() != 0) {
    limit = std::min(limit, std::floor(static_cast<double>(device.max_shared_bytes_per_sm()) /
                                       static_cast<double>(kernel.shared_bytes)));
  }
  return std::max(limit, 1.0);  // it ran, so at least one fits
}

namespace {

std::string lower(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

bool matrix_in_lower_case(const std::string& text) {
  return has_any(text, {"gemm", "winograd", "implicit_convolve", "cudnn_conv", "conv2d", "fprop",
                        "dgrad", "wgrad", "nvjet", "triton_tem", "cutlass"});
}

}  // namespace

bool is_matrix_kernel(std::string_view name) { return matrix_in_lower_case(lower(name)); }

bool is_fp32_matrix(std::string_view name) {
  const std::string text = lower(name);
  if (!matrix_in_lower_case(text)) return false;
  // The instruction is in the name: sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_…_ffma_… of cuBLAS 13.
  if (text.find("_ffma_") != std::string::npos) return true;
  return !has_any(text, {"tensorop", "tf32",   "bf16",  "f16",  "fp16", "half", "hgemm",
                         "hmma",     "xmma",   "wgmma", "gmma", "imma", "s8",   "fp8",
                         "e4m3",     "s16816", "s1688", "s884", "h884", "nvjet"});
}

std::vector<KernelFill> rate_kernels(const model::Model& model,
                                     const model::DeviceTimeline& device) {
  const read::Process& process = model.process_of(device);
  const trace::Device none;
  const trace::Device& info =
      device.device < process.devices.size() ? process.devices[device.device].info : none;
  std::vector<KernelFill> rated;
  rated.reserve(process.op_descriptors.size());
  for (const read::OpDescriptor& kernel : process.op_descriptors) {
    KernelFill& fill = rated.emplace_back();
    if (kernel.kind != trace::OP_KERNEL) continue;
    fill.fp32_matrix = is_fp32_matrix(model.recording.strings[kernel.name]);
    const double blocks = static_cast<double>(kernel.grid[0]) * kernel.grid[1] * kernel.grid[2];
    if (blocks < 1 || info.sm_count() == 0) continue;
    fill.fill = std::min(1.0, blocks / info.sm_count());
    const double per_sm = blocks_per_sm(kernel, info);
    if (per_sm > 0) fill.waves = blocks / (info.sm_count() * per_sm);
  }
  return rated;
}

}  // namespace idlescope::diagnose
