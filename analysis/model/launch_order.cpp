#include "analysis/model/launch_order.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <tuple>

#include "analysis/model/device_steps.h"

namespace idlescope::model {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string kernel_family(std::string_view name) {
  std::string family;
  int depth = 0;
  for (const char c : name) {
    if (c == '<') ++depth;
    if (depth == 0 && !std::isdigit(static_cast<unsigned char>(c))) family += c;
    if (c == '>' && depth > 0) --depth;
  }
  return family;
}

bool is_optimizer_kernel(std::string_view name) {
  const std::string text = lower(name);
  for (const char* part : {"multi_tensor", "multitensor", "adam", "sgd", "lamb", "adagrad", "muon",
                           "adafactor", "found_inf"}) {
    const std::string word(part);
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      // Half of PyTorch's kernels are lambdas.
      if (word != "lamb" || text.compare(at, 6, "lambda") != 0) return true;
    }
  }
  return false;
}

std::vector<Launched> launch_order(const read::Recording& recording, const read::Process& process,
                                   const DeviceTimeline& device, bool on_device) {
  std::map<std::tuple<int, std::string, int, uint32_t>, uint32_t> ids;
  std::vector<uint32_t> token_of(process.op_descriptors.size(), kNone);
  std::vector<bool> optimizer(process.op_descriptors.size(), false);
  std::vector<bool> comm(process.op_descriptors.size(), false);
  for (size_t d = 0; d < process.op_descriptors.size(); ++d) {
    const read::OpDescriptor& op = process.op_descriptors[d];
    const std::string& name = recording.strings[op.name];
    std::string family;
    int size = 0;
    if (op.graph_id != 0 || op.kind == trace::OP_GRAPH) {
      family = "graph";
    } else if (op.kind == trace::OP_KERNEL) {
      family = kernel_family(name);
      const uint64_t blocks = uint64_t{op.grid[0]} * op.grid[1] * op.grid[2];
      size = static_cast<int>(std::bit_width(blocks));
      optimizer[d] = is_optimizer_kernel(name);
      comm[d] = is_comm_kernel(name);
    } else {
      size = static_cast<int>(std::bit_width(op.bytes)) * 8 + op.copy_kind;
    }
    const auto key = std::make_tuple(static_cast<int>(op.kind), family, size, op.graph_id);
    token_of[d] = ids.try_emplace(key, static_cast<uint32_t>(ids.size())).first->second;
  }
  std::vector<Launched> order;
  order.reserve(device.ops.size());
  std::vector<Ns> launches;
  for (const uint32_t i : device.ops) launches.push_back(process.ops[i].begin_ns);
  for (const WindowSpan& window : device.windows) {
    if (on_device) break;
    const std::vector<Ns> part = launch_times(process, device, window);
    std::copy(part.begin(), part.end(), launches.begin() + static_cast<ptrdiff_t>(window.first));
  }
  uint32_t previous_graph_call = kNone;
  for (size_t at = 0; at < device.ops.size(); ++at) {
    const read::Op& op = process.ops[device.ops[at]];
    const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
    const bool graph = descriptor.graph_id != 0 || descriptor.kind == trace::OP_GRAPH;
    if (graph) {
      if (op.call != kNone && op.call == previous_graph_call) {
        ++order.back().ops;
        order.back().device_ns += op.end_ns - op.begin_ns;
        continue;
      }
      previous_graph_call = op.call;
    }
    uint32_t thread = 0;
    if (op.call != kNone) {
      thread = process.call_descriptors[process.calls[op.call].descriptor].thread_id;
    }
    order.push_back({launches[at], token_of[op.descriptor], thread, optimizer[op.descriptor], graph,
                     comm[op.descriptor], 1, op.end_ns - op.begin_ns});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Launched& a, const Launched& b) { return a.launch_ns < b.launch_ns; });
  return order;
}

}  // namespace idlescope::model
