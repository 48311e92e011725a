// S09 in LibTorch: a 60-layer MLP, 128 wide, batch 8: kernels shorter than their launches.
//
// Fix A: batch 256, in the same step time. Fix C is no fix: a synchronisation after every
// step, for whose removal no gain may be promised. The twin is 2048 wide at batch 8192 (fix A:
// twice that).
#include "training_job.h"

int main(int argc, char** argv) {
  const scenario::Options options = scenario::parse(argc, argv, 900);
  scenario::Job job(options);
  const int layers = options.tiny ? 6 : 60;
  const bool heavy = options.twin && !options.tiny;
  const int64_t width = options.tiny ? 16 : heavy ? 2048 : 128;
  int64_t batch = heavy ? 8192 : 8;
  if (options.fix == "A") batch *= heavy ? 2 : 32;
  torch::nn::Sequential model;
  for (int i = 0; i < layers; ++i) {
    model->push_back(torch::nn::Linear(width, width));
    model->push_back(torch::nn::ReLU());
  }
  model->to(job.device());
  torch::optim::SGD optimizer(model->parameters(), 1e-5);
  const torch::Tensor x = torch::randn({batch, width}, job.device());
  const torch::Tensor y = torch::randn({batch, width}, job.device());
  const auto step = [&] {
    torch::Tensor loss = torch::mse_loss(model->forward(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  };
  for (int i = 0; i < 5; ++i) step();
  const double tl = job.calibrated("S09L.tl", [&] { return job.host_ms(step); });
  const double tc = job.calibrated("S09L.tc", [&] { return job.device_ms(step); });
  job.end_of_calibration();
  for (;;) {
    step();
    if (options.fix == "C") job.synchronize();
    if (!job.go_on()) break;
  }
  job.finish_steps();
  const double share = std::max(0.0, 1 - tc / job.p50());
  if (options.twin) {
    job.print("S09L", "launch_tiny_batch", tc, tl, batch,
              scenario::expected({"COMPUTE"}, {}, -1, {}, {"larger-batch"}, "LAUNCH"));
    return 0;
  }
  job.print("S09L", "launch_tiny_batch", tc, tl, batch,
            scenario::expected({"LAUNCH"}, {"LAUNCH_LEAF"}, share, {"cuda-graph", "larger-batch"},
                               {"num-workers", "pin-non-blocking", "item", "synchronize",
                                "remove-sync", "implicit-sync"},
                               nullptr));
}
