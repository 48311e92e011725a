// A job of the tests: a LibTorch training program, built by libtorch_test.py against the LibTorch
// of a Python's torch. Prints the losses and the number of batches.
#include <torch/torch.h>

#include <cstdio>

#include "idlescope/annotate.h"
#include "idlescope/loader.h"

namespace {

constexpr int64_t kSamples = 64;
constexpr int64_t kBatch = 8;
constexpr int kEpochs = 2;

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  torch::data::Example<> get(size_t index) override {
    const auto value = static_cast<float>(index);
    return {torch::full({8}, value / kSamples), torch::tensor(static_cast<int64_t>(index % 3))};
  }
  torch::optional<size_t> size() const override { return kSamples; }
};

}  // namespace

int main() {
  torch::manual_seed(5);
  torch::set_num_threads(1);
  torch::nn::Sequential model(torch::nn::Linear(8, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 3));
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto data = idlescope::followed_dataset(Points().map(torch::data::transforms::Stack<>()));
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(data), torch::data::DataLoaderOptions().batch_size(kBatch).workers(2));
  int batches = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (auto& batch : idlescope::followed(*loader)) {
      IDLESCOPE_RANGE("training step");
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      IDLESCOPE_STEP();
      ++batches;
      std::printf("%a\n", loss.item<double>());
    }
  }
  std::printf("%d batches\n", batches);
  return 0;
}
