// S06 in LibTorch: 154 MB a step from ordinary memory with a blocking copy.
//
// Fix A: pinned memory and a side stream that copies ahead. Fix B: bytes on the wire, cast
// on the device. The twin computes for twenty times the copy.
#include "training_job.h"

int main(int argc, char** argv) {
  const scenario::Options options = scenario::parse(argc, argv, 250);
  scenario::Job job(options);
  const int64_t batch = options.tiny ? 2 : 256;
  const int64_t side = options.tiny ? 16 : 224;
  const auto type = options.cuda ? torch::kBFloat16 : torch::kFloat32;
  const int64_t left = side / 16;
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 8).stride(8)), torch::nn::ReLU(),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 2).stride(2)), torch::nn::ReLU(),
      torch::nn::Flatten(), torch::nn::Linear(64 * left * left, 10));
  model->to(job.device(), type);
  torch::optim::SGD optimizer(model->parameters(), 0.001);
  const int64_t size = options.tiny ? 32 : 4096;
  const torch::Tensor heavy = torch::randn({size, size}, torch::device(job.device()).dtype(type));
  int products = 0;

  const auto step = [&](const torch::Tensor& images) {
    torch::Tensor loss =
        model->forward(images.to(type).mul(1.0 / 255)).to(torch::kFloat32).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    for (int i = 0; i < products; ++i) torch::mm(heavy, heavy);
  };

  std::vector<torch::Tensor> batches;
  for (int i = 0; i < 4; ++i) {
    torch::Tensor images = torch::randint(0, 256, {batch, 3, side, side}, torch::kUInt8);
    if (options.fix != "B") images = images.to(torch::kFloat32);
    if (options.fix == "A" && options.cuda) images = images.pin_memory();
    batches.push_back(images);
  }
  const torch::Tensor on_device = batches[0].to(job.device());
  for (int i = 0; i < 5; ++i) step(on_device);
  const double tl =
      job.calibrated("S06L.tl", [&] { return job.host_ms([&] { step(on_device); }); });
  double tc = job.calibrated("S06L.tc", [&] { return job.device_ms([&] { step(on_device); }); });
  const double product = job.calibrated("S06L.product", [&] {
    return job.device_ms([&] {
      for (int i = 0; i < 10; ++i) torch::mm(heavy, heavy);
    }) / 10;
  });
  double wanted = std::max(2.5 * tl, 5.0);
  if (options.twin) {
    wanted = 20 * job.calibrated("S06L.copy", [&] {
      return job.host_ms([&] { batches[0].to(job.device()); }, 3);
    });
  }
  if (!options.tiny && tc < wanted) {
    products = static_cast<int>((wanted - tc) / product) + 1;
    tc += products * product;
  }

  job.end_of_calibration();
  if (options.fix == "A" && options.cuda) {
    const at::cuda::CUDAStream copies = at::cuda::getStreamFromPool();
    const auto load = [&](int i) {
      const c10::cuda::CUDAStreamGuard guard(copies);
      at::cuda::CUDAEvent done;
      torch::Tensor images = batches[i % 4].to(job.device(), type, /*non_blocking=*/true);
      done.record(copies);
      return std::make_pair(images, std::move(done));
    };
    auto next = load(0);
    for (int i = 1;; ++i) {
      auto current = std::move(next);
      next = load(i);
      current.second.block(at::cuda::getCurrentCUDAStream());
      current.first.record_stream(at::cuda::getCurrentCUDAStream());
      step(current.first);
      if (!job.go_on()) break;
    }
  } else {
    for (int i = 0;; ++i) {
      step(batches[i % 4].to(job.device()));
      if (!job.go_on()) break;
    }
  }
  job.finish_steps();
  const double share = std::max(0.0, 1 - tc / job.p50());
  job.print("S06L", "copy_pageable", tc, tl, batch,
            options.fix == "A" || options.twin
                ? scenario::expected({"COMPUTE"}, {}, -1, {}, {"num-workers"}, "TRANSFER")
                : scenario::expected({"TRANSFER"}, {"BUSY_COPY_EXPOSED", "XFER_PAGEABLE"}, share,
                                     {"pin-non-blocking", "prefetch-stream", "uint8"},
                                     {"num-workers", "larger-batch"}, nullptr));
}
