#include "analysis/simulate/model_program.h"

#include <algorithm>
#include <array>
#include <string>

namespace idlescope::simulate {
namespace {

enum : uint64_t { kShape = 0x200, kVary, kDispatch, kOptimizer };

constexpr int kBackwardPosition = 10000;
constexpr int kOptimizerPosition = 100000;

constexpr std::array<const char*, 5> kForwardNames = {
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
    "segment_k_off_kernel__5x_cublas",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, "
    "3ul>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, "
    "false>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
    "float*, c10::BFloat16*)",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>("
    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8::Params)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::"
    "func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float>>, unsigned int, "
    "c10::BFloat16, 4> >(at::native::ReduceOp)"};

constexpr const char* kOptimizerName =
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
    "FusedAdamMathFunctor<float, 4> >";
constexpr const char* kSingleOptimizerName =
    "void at::native::vectorized_elementwise_kernel<4, at::native::addcdiv_cuda_kernel(at::"
    "TensorIteratorBase&, c10::Scalar const&)::lambda, std::array<char*, 4ul> >";
constexpr const char* kExchangeName =
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

}  // namespace

ModelProgram::ModelProgram(ProgramBuilder* builder, const LoopSpec& spec, const Draws& draws,
                           uint16_t rank, uint32_t number, uint32_t main, uint32_t autograd,
                           uint32_t gil, std::vector<uint32_t>* collectives)
    : builder_(builder),
      loop_(spec),
      spec_(spec.model),
      draws_(draws.bits(key(0x30D3, number))),  // the same model on every rank
      rank_(rank),
      number_(number),
      main_(main),
      autograd_(autograd),
      gil_(gil),
      collectives_(collectives) {}

OpSpec ModelProgram::kernel(int position, int step) const {
  auto where = static_cast<uint64_t>(position);
  bool optimizer = position >= kOptimizerPosition;
  bool backward = !optimizer && position >= kBackwardPosition;
  Ns median = optimizer ? spec_.optimizer_kernel_ns : spec_.kernel_ns;
  Ns base = draws_.tail(median, optimizer ? 200 : spec_.kernel_sigma, kShape, where);
  if (backward) base = base * 21 / 20;
  Ns ns = draws_.jitter(base, 15, key(kVary, rank_), key(where, static_cast<uint64_t>(step)));
  if (spec_.drift_permille > 0) ns += scale(ns, spec_.drift_permille * step, 1000LL * loop_.steps);
  if (rank_ == loop_.comm.straggler_rank)
    ns += scale(ns, loop_.comm.straggler_kernels_permille, 1000);

  OpSpec op;
  op.rank = rank_;
  op.duration_ns = std::max<Ns>(ns, 900);
  bool single = optimizer && spec_.optimizer_kernels > 16;
  std::string text = optimizer ? (single ? kSingleOptimizerName : kOptimizerName)
                               : kForwardNames[where % kForwardNames.size()];
  if (number_ > 0) text += "_g";
  op.name = builder_->name(text);
  op.grid = static_cast<uint32_t>(
      std::max<int64_t>(1, draws_.tail(spec_.grid, 600, key(kShape, 7), where)));
  op.block = 256;
  op.registers = 64;
  if (spec_.two_streams && !optimizer && position % 2 == 1) op.stream = kSideStream;
  return op;
}

Ns ModelProgram::dispatch_ns(int position, int step) const {
  bool optimizer = position >= kOptimizerPosition;
  Ns extra = optimizer ? spec_.extra_optimizer_ns / std::max(1, spec_.optimizer_kernels)
                       : spec_.extra_dispatch_ns / std::max(1, 3 * forward_launches());
  return draws_.jitter(spec_.dispatch_ns + extra, 150, key(kDispatch, rank_),
                       key(static_cast<uint64_t>(position), static_cast<uint64_t>(step)));
}

void ModelProgram::dispatch(uint32_t thread, Ns ns) {
  if (gil_ != kNone) builder_->lock(thread, gil_, report::HOST_BLOCKED);
  builder_->run(thread, ns, report::LAUNCH_LEAF);
  if (gil_ != kNone) builder_->unlock(thread, gil_);
}

void ModelProgram::launch(uint32_t thread, int position, int step, uint32_t dep) {
  dispatch(thread, dispatch_ns(position, step));
  OpSpec op = kernel(position, step);
  if (spec_.two_streams && last_kernel_ != kNone) {
    last_kernel_ = builder_->launch(thread, op, {last_kernel_, dep});
  } else {
    last_kernel_ = builder_->launch(thread, op, {dep});
  }
}

void ModelProgram::forward(int step, uint32_t input, const std::function<void(int)>& after_layer) {
  uint32_t range = builder_->range_begin(main_, "Module.forward", trace::RANGE_FORWARD);
  int position = 0;
  for (int layer = 0; layer < spec_.layers; ++layer) {
    for (int i = 0; i < spec_.kernels_per_layer; ++i) {
      launch(main_, position, step, position == 0 ? input : kNone);
      ++position;
    }
    after_layer(layer);
  }
  builder_->mark_end(main_, range);
}

void ModelProgram::exchange_bucket(uint32_t thread, int step, int bucket) {
  if (next_collective_ == collectives_->size()) {
    collectives_->push_back(builder_->collective(loop_.ranks));
  }
  OpSpec op;
  op.rank = rank_;
  op.stream = kCommStream;
  op.communication = true;
  op.name = builder_->name(kExchangeName);
  op.grid = 16;
  op.block = 512;
  op.registers = 96;
  op.collective = (*collectives_)[next_collective_++];
  op.duration_ns = draws_.jitter(loop_.comm.transfer_ns, 40, 0x2C0,
                                 key(static_cast<uint64_t>(step), static_cast<uint64_t>(bucket)));
  op.bytes = 25000000;
  op.exposed_leaf = report::COMM_TRANSFER;
  dispatch(thread, 6000);
  last_exchange_ = builder_->launch(thread, op, {builder_->last_op(rank_, kComputeStream)});
}

void ModelProgram::backward(int step, bool exchange) {
  ProgramBuilder& b = *builder_;
  const Machine& m = b.program().machine;
  uint32_t range = b.range_begin(main_, "Tensor.backward", trace::RANGE_BACKWARD);
  uint32_t thread = main_;
  uint32_t done = kNone;
  if (spec_.autograd_thread) {
    uint32_t begin = b.flag();
    done = b.flag();
    dispatch(main_, 15000);
    b.set(main_, begin);
    b.await(autograd_, begin, m.hand_over_ns, report::HOST_BACKWARD, true);
    thread = autograd_;
  }
  Ns hooks = loop_.host.backward_ns;
  int launches = 2 * forward_launches();
  int buckets = exchange && loop_.ranks > 1 ? std::max(1, loop_.comm.buckets) : 0;
  int sent = 0;
  for (int i = 0; i < launches; ++i) {
    launch(thread, kBackwardPosition + i, step, kNone);
    if (hooks > 0 && i % 8 == 7) b.run(thread, hooks * 8 / launches, report::HOST_BACKWARD);
    if (buckets > 0 && (i + 1) * buckets / launches > sent) exchange_bucket(thread, step, sent++);
  }
  if (spec_.autograd_thread) {
    b.set(autograd_, done);
    b.await(main_, done, m.hand_over_ns, report::HOST_BACKWARD, true);
  }
  b.mark_end(main_, range);
}

void ModelProgram::optimizer(int step) {
  ProgramBuilder& b = *builder_;
  uint32_t range =
      b.range_begin(main_, number_ > 0 ? "Optimizer.step#SGD.step" : "Optimizer.step#AdamW.step",
                    trace::RANGE_OPTIMIZER);
  b.run(main_, draws_.jitter(loop_.host.optimizer_ns, 60, kOptimizer, static_cast<uint64_t>(step)),
        report::HOST_OPTIMIZER);
  for (int i = 0; i < spec_.optimizer_kernels; ++i) {
    launch(main_, kOptimizerPosition + i, step, i == 0 ? last_exchange_ : kNone);
  }
  b.mark_end(main_, range);
  OpSpec zero;
  zero.kind = trace::OP_MEMSET;
  zero.rank = rank_;
  zero.bytes = 4 << 20;
  zero.duration_ns = 2500;
  zero.exposed_leaf = report::BUSY_MEM;
  uint32_t zero_range =
      b.range_begin(main_, "Optimizer.zero_grad#AdamW.zero_grad", trace::RANGE_ZERO_GRAD);
  dispatch(main_, 8000);
  b.launch(main_, zero);
  b.mark_end(main_, zero_range);
}

void ModelProgram::graph_step(int step, uint32_t input) {
  std::vector<OpSpec> nodes;
  int launches = forward_launches();
  for (int i = 0; i < 3 * launches; ++i) {
    int position = i < launches ? i : kBackwardPosition + i - launches;
    OpSpec op = kernel(position, step);
    op.stream = kComputeStream;
    op.graph = 1 + number_;
    op.node = static_cast<uint32_t>(i);
    nodes.push_back(op);
  }
  if (input != kNone && builder_->program().ops[input].stream != kComputeStream) {
    // The replay waits for its input as a whole: a tiny copy node in front carries the edge.
    OpSpec copy;
    copy.kind = trace::OP_MEMCPY;
    copy.copy_kind = trace::COPY_D2D;
    copy.src = copy.dst = trace::MEMORY_DEVICE;
    copy.rank = rank_;
    copy.bytes = 1 << 20;
    copy.duration_ns = 3000;
    copy.exposed_leaf = report::BUSY_MEM;
    builder_->copy(main_, copy, false, report::LAUNCH_LEAF, {input});
  }
  dispatch(main_, spec_.dispatch_ns + 6000);
  builder_->launch_graph(main_, std::move(nodes));
}

}  // namespace idlescope::simulate
