#include "tests/accuracy/peer_rules.h"

#include <algorithm>
#include <array>

#include "analysis/model/model.h"

namespace idlescope::accuracy {
namespace {

using read::Ns;

constexpr Ns kKernelWaitNs = 30'000;
constexpr Ns kLongGapNs = 1'000'000;
constexpr size_t kNamedGaps = 5;

struct Span {
  Ns begin_ns;
  Ns end_ns;
};

std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Span> out;
  for (const Span& s : spans) {
    if (!out.empty() && s.begin_ns <= out.back().end_ns) {
      out.back().end_ns = std::max(out.back().end_ns, s.end_ns);
    } else {
      out.push_back(s);
    }
  }
  return out;
}

// Parts of [begin, end) that `by` covers go to `covered`, the others stay.
std::vector<Span> subtract(const std::vector<Span>& from, const std::vector<Span>& by,
                           std::vector<Span>* covered) {
  std::vector<Span> left;
  size_t i = 0;
  for (const Span& s : from) {
    Ns at = s.begin_ns;
    while (i < by.size() && by[i].end_ns <= at) ++i;
    for (size_t j = i; j < by.size() && by[j].begin_ns < s.end_ns; ++j) {
      if (by[j].begin_ns > at) left.push_back({at, by[j].begin_ns});
      Ns a = std::max(at, by[j].begin_ns);
      Ns b = std::min(s.end_ns, by[j].end_ns);
      if (b > a) covered->push_back({a, b});
      at = std::max(at, b);
    }
    if (at < s.end_ns) left.push_back({at, s.end_ns});
  }
  return left;
}

struct Rows {
  std::vector<Span> kernels;
  std::vector<Span> copies;
  std::vector<Span> sets;
  std::vector<Span> comm;
  std::vector<Span> runtime;
  std::vector<Span> loader;
};

Rows rows_of(const model::Model& model, uint32_t device) {
  const model::DeviceTimeline& timeline = model.devices[device];
  const read::Process& process = model.process_of(timeline);
  const std::vector<model::Work>& work = model.processes[timeline.process].work;
  Rows rows;
  for (uint32_t op : timeline.ops) {
    Span span{process.ops[op].begin_ns, process.ops[op].end_ns};
    const read::OpDescriptor& d = process.op_descriptors[process.ops[op].descriptor];
    switch (work[process.ops[op].descriptor]) {
      case model::Work::kCompute:
        rows.kernels.push_back(span);
        break;
      case model::Work::kComm:
        rows.comm.push_back(span);
        break;
      default:
        (d.kind == trace::OP_MEMSET ? rows.sets : rows.copies).push_back(span);
    }
  }
  for (const read::Call& call : process.calls) rows.runtime.push_back({call.begin_ns, call.end_ns});
  for (const read::HostEvent& event : process.host_events) {
    if (event.kind == trace::EVENT_LOADER_NEXT)
      rows.loader.push_back({event.begin_ns, event.end_ns});
  }
  return rows;
}

std::vector<Stretch> tensorboard(const model::Model& model, uint32_t device) {
  Rows rows = rows_of(model, device);
  std::vector<Span> kernels = merged(rows.kernels);
  if (kernels.empty()) return {};
  std::vector<Span> none;
  std::vector<Span> left =
      subtract({{kernels.front().begin_ns, kernels.back().end_ns}}, kernels, &none);
  std::vector<Stretch> out;
  auto take = [&](std::vector<Span> by, Class label) {
    std::vector<Span> covered;
    left = subtract(left, merged(std::move(by)), &covered);
    for (const Span& s : covered) out.push_back({s.begin_ns, s.end_ns, label});
  };
  take(rows.copies, Class::kTransfer);
  take(rows.sets, Class::kBusy);
  take(rows.comm, Class::kComm);
  take(rows.runtime, Class::kLaunch);  // "Runtime"
  take(rows.loader, Class::kData);
  for (const Span& s : left) out.push_back({s.begin_ns, s.end_ns, Class::kHost});  // "Other"
  std::sort(out.begin(), out.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
  return out;
}

// Ops of the stream with most compute, in order.
std::vector<uint32_t> main_stream(const model::Model& model, uint32_t device) {
  const model::DeviceTimeline& timeline = model.devices[device];
  const read::Process& process = model.process_of(timeline);
  std::vector<Ns> busy(process.streams.size() + 1, 0);
  auto stream_of = [&](uint32_t op) {
    uint32_t s = process.op_descriptors[process.ops[op].descriptor].stream;
    return s == read::kNone ? process.streams.size() : size_t{s};
  };
  for (uint32_t op : timeline.ops)
    busy[stream_of(op)] += process.ops[op].end_ns - process.ops[op].begin_ns;
  auto best = static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
  std::vector<uint32_t> ops;
  for (uint32_t op : timeline.ops) {
    if (stream_of(op) == best) ops.push_back(op);
  }
  return ops;
}

std::vector<Stretch> hta(const model::Model& model, uint32_t device) {
  const read::Process& process = model.process_of(model.devices[device]);
  std::vector<Stretch> out;
  Ns last = -1;
  for (uint32_t op : main_stream(model, device)) {
    const read::Op& o = process.ops[op];
    if (last >= 0 && o.begin_ns > last) {
      Class label = Class::kUnknown;  // "other"
      bool launched = o.call != read::kNone;
      if (launched && process.calls[o.call].begin_ns > last) {
        label = Class::kHost;  // "host wait"
      } else if (o.begin_ns - last < kKernelWaitNs) {
        label = Class::kDispatch;  // "kernel wait"
      }
      out.push_back({last, o.begin_ns, label});
    }
    last = std::max(last, o.end_ns);
  }
  return out;
}

std::vector<Stretch> nsys_ai(const model::Model& model, uint32_t device) {
  const read::Process& process = model.process_of(model.devices[device]);
  std::vector<Stretch> gaps;
  Ns last = -1;
  for (uint32_t op : main_stream(model, device)) {
    const read::Op& o = process.ops[op];
    if (last >= 0 && o.begin_ns - last >= kLongGapNs)
      gaps.push_back({last, o.begin_ns, Class::kUnknown});
    last = std::max(last, o.end_ns);
  }
  std::vector<size_t> longest(gaps.size());
  for (size_t i = 0; i < gaps.size(); ++i) longest[i] = i;
  std::sort(longest.begin(), longest.end(), [&](size_t a, size_t b) {
    return gaps[a].end_ns - gaps[a].begin_ns > gaps[b].end_ns - gaps[b].begin_ns;
  });
  if (longest.size() > kNamedGaps) longest.resize(kNamedGaps);
  for (size_t g : longest) {
    std::array<bool, 4> seen{};
    for (const read::Call& call : process.calls) {
      if (call.end_ns <= gaps[g].begin_ns || call.begin_ns >= gaps[g].end_ns) continue;
      const std::string& name =
          model.recording.strings[process.call_descriptors[call.descriptor].name];
      if (name.find("Synchronize") != std::string::npos) seen[0] = true;
      if (name.find("Memcpy") != std::string::npos) seen[1] = true;
      if (name.find("Memset") != std::string::npos) seen[2] = true;
      if (name.find("cudaLaunch") != std::string::npos) seen[3] = true;
    }
    gaps[g].label = seen[0]   ? Class::kSync
                    : seen[1] ? Class::kTransfer
                    : seen[2] ? Class::kOther
                    : seen[3] ? Class::kLaunch
                              : Class::kData;  // "possible DataLoader / GIL / I/O"
  }
  return gaps;
}

}  // namespace

std::vector<Stretch> peer_labels(Tool tool, const model::Model& model, uint32_t device) {
  switch (tool) {
    case Tool::kTensorBoard:
      return tensorboard(model, device);
    case Tool::kHta:
      return hta(model, device);
    case Tool::kNsysAi:
      return nsys_ai(model, device);
    case Tool::kIdlescope:
      break;
  }
  return {};
}

Class peer_verdict(Tool tool, const std::vector<Stretch>& labels, int64_t analysed_ns) {
  std::array<double, kClasses> share{};
  for (const Stretch& s : labels) {
    share[static_cast<size_t>(s.label)] += static_cast<double>(s.end_ns - s.begin_ns) /
                                           static_cast<double>(std::max<int64_t>(analysed_ns, 1));
  }
  auto of = [&](Class c) { return share[static_cast<size_t>(c)]; };
  if (tool == Tool::kTensorBoard) {
    double idle = 0;
    for (double s : share) idle += s;
    if (of(Class::kData) > 0.05) return Class::kData;
    if (of(Class::kComm) > 0.10) return Class::kComm;
    return idle > 0.5 ? Class::kLaunch : Class::kBusy;  // "GPU utilisation is low"
  }
  size_t best = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    if (share[c] > share[best]) best = c;
  }
  return share[best] > 0.05 ? static_cast<Class>(best) : Class::kBusy;
}

}  // namespace idlescope::accuracy
