#include "analysis/diagnose/timelines.h"

#include <algorithm>
#include <string>

#include "analysis/diagnose/gap_evidence.h"
#include "analysis/diagnose/leaves.h"

namespace idlescope::diagnose {
namespace {

using model::Work;

class Drawing {
 public:
  Drawing(const model::Model& model, const DevicePass& pass, const std::vector<Gap>& gaps)
      : model_(model),
        pass_(pass),
        gaps_(gaps),
        device_(model.devices[pass.device]),
        process_(model.process_of(device_)),
        owner_(model.processes[device_.process]),
        evidence_(model, device_) {}

  Timeline draw(std::string which, Ns begin_ns, Ns end_ns) {
    begin_ = begin_ns;
    end_ = end_ns;
    timeline_ = {};
    timeline_.which = std::move(which);
    timeline_.begin_ns = begin_ns;
    timeline_.end_ns = end_ns;
    add_device_lanes();
    add_causes();
    add_threads();
    add_loader();
    return std::move(timeline_);
  }

 private:
  Lane& lane(std::string name, std::string group) {
    timeline_.lanes.push_back({std::move(name), std::move(group), {}});
    return timeline_.lanes.back();
  }

  bool clip(Bar& bar) const {
    bar.begin_ns = std::max(bar.begin_ns, begin_);
    bar.end_ns = std::min(bar.end_ns, end_);
    return bar.end_ns > bar.begin_ns;
  }

  // Joins neighbours that are closer than a pixel until the lane is small enough.
  void thin(Lane& lane) const {
    Ns closer = (end_ - begin_) / 4000 + 1;
    while (lane.bars.size() > kBarsPerLane) {
      std::vector<Bar> fewer;
      for (Bar& bar : lane.bars) {
        if (!fewer.empty() && bar.begin_ns - fewer.back().end_ns <= closer &&
            bar.leaf == fewer.back().leaf) {
          fewer.back().end_ns = std::max(fewer.back().end_ns, bar.end_ns);
          if (fewer.back().label != bar.label) fewer.back().label.clear();
        } else {
          fewer.push_back(std::move(bar));
        }
      }
      lane.bars = std::move(fewer);
      closer *= 4;
      if (closer > end_ - begin_) break;
    }
    if (lane.bars.size() > kBarsPerLane) lane.bars.resize(kBarsPerLane);
  }

  void add_device_lanes() {
    const uint32_t id = device_.device < process_.devices.size()
                            ? process_.devices[device_.device].info.device_id()
                            : 0;
    Lane compute{"GPU " + std::to_string(id), "gpu", {}};
    Lane copies{"copies", "copy", {}};
    for (const model::WindowSpan& window : device_.windows) {
      for (size_t i = window.first; i < window.last; ++i) {
        const read::Op& op = process_.ops[device_.ops[i]];
        if (op.begin_ns >= end_) break;
        Bar bar;
        bar.begin_ns = op.begin_ns;
        bar.end_ns = op.end_ns;
        if (!clip(bar)) continue;
        bar.label = op_name(model_.recording, process_, op);
        const Work work = owner_.work[op.descriptor];
        (work == Work::kCompute || work == Work::kComm ? compute : copies).bars.push_back(bar);
      }
    }
    thin(compute);
    thin(copies);
    timeline_.lanes.push_back(std::move(compute));
    timeline_.lanes.push_back(std::move(copies));
  }

  void add_causes() {
    Lane& causes = lane("waits for", "cause");
    for (const GapPiece& piece : causes_between(model_, pass_, begin_, end_)) {
      if (piece.leaf == report::BUSY_COMPUTE || piece.leaf == report::BUSY_MEM) continue;
      Bar bar;
      bar.begin_ns = piece.begin_ns;
      bar.end_ns = piece.end_ns;
      bar.leaf = piece.leaf;
      bar.label = report::Leaf_Name(piece.leaf);
      for (size_t g = 0; g < gaps_.size(); ++g) {
        if (gaps_[g].begin_ns <= piece.begin_ns && piece.end_ns <= gaps_[g].end_ns) {
          bar.gap_index = static_cast<int32_t>(g);
          break;
        }
      }
      causes.bars.push_back(bar);
    }
    thin(causes);
  }

  std::string segment_label(const model::Segment& segment) const {
    switch (segment.source) {
      case model::Source::kCall: {
        const read::Call& call = process_.calls[segment.ref];
        return model_.recording.strings[process_.call_descriptors[call.descriptor].name];
      }
      case model::Source::kOverhead:
        return trace::OverheadKind_Name(process_.overheads[segment.ref].kind);
      default: {
        const read::HostEvent& event = process_.host_events[segment.ref];
        if (event.kind == trace::EVENT_LOADER_NEXT) return "next()";
        if (event.kind == trace::EVENT_RANGE && event.a > 0) {
          return model_.recording.strings[static_cast<uint32_t>(event.a)];
        }
        return trace::HostEventKind_Name(event.kind);
      }
    }
  }

  void add_threads() {
    for (uint32_t t = 0; t < owner_.threads.threads.size(); ++t) {
      const model::ThreadTimeline& thread = owner_.threads.threads[t];
      if (t != owner_.threads.main && thread.launches == 0) continue;
      Lane out{evidence_.thread_role(t), "host", {}};
      size_t i = thread.last_before(begin_);
      if (i == model::ThreadTimeline::npos) i = 0;
      for (; i < thread.segments.size() && thread.segments[i].begin_ns < end_; ++i) {
        Bar bar;
        bar.begin_ns = thread.segments[i].begin_ns;
        bar.end_ns = thread.segments[i].end_ns;
        if (!clip(bar)) continue;
        bar.label = segment_label(thread.segments[i]);
        out.bars.push_back(bar);
      }
      thin(out);
      if (!out.bars.empty()) timeline_.lanes.push_back(std::move(out));
    }
  }

  void add_loader() {
    Lane pin{"pin thread", "pin", {}};
    Lane queue{"batches ready", "queue", {}};
    for (const model::Iterator& iterator : model_.loader.iterators) {
      if (iterator.process != device_.process) continue;
      for (const model::Worker& worker : iterator.workers) {
        Lane out{"worker " + std::to_string(worker.number), "worker", {}};
        for (const uint32_t b : worker.batches) add_batch_bar(b, out);
        if (!out.bars.empty()) timeline_.lanes.push_back(std::move(out));
      }
      Ns previous = begin_;
      for (const uint32_t b : iterator.batches) {
        const model::Batch& batch = model_.loader.batches[b];
        if (batch.pin_end_ns != 0) {
          Bar bar;
          bar.begin_ns = batch.pin_begin_ns;
          bar.end_ns = batch.pin_end_ns;
          bar.label = "batch " + std::to_string(batch.index);
          bar.batch = batch.index;
          if (clip(bar)) pin.bars.push_back(bar);
        }
        if (batch.ready < 0 || batch.next_begin_ns < begin_ || batch.next_begin_ns >= end_) {
          continue;
        }
        Bar bar;
        bar.begin_ns = previous;
        bar.end_ns = batch.next_begin_ns;
        bar.value = static_cast<double>(batch.ready);
        if (bar.end_ns > bar.begin_ns) queue.bars.push_back(bar);
        previous = batch.next_begin_ns;
      }
    }
    if (!pin.bars.empty()) timeline_.lanes.push_back(std::move(pin));
    if (!queue.bars.empty()) timeline_.lanes.push_back(std::move(queue));
  }

  void add_batch_bar(uint32_t b, Lane& out) const {
    const model::Batch& batch = model_.loader.batches[b];
    Bar bar;
    bar.begin_ns = batch.fetch_begin_ns;
    bar.end_ns = batch.fetch_end_ns;
    if (!clip(bar)) return;
    bar.label = "batch " + std::to_string(batch.index);
    bar.batch = batch.index;
    out.bars.push_back(bar);
  }

  const model::Model& model_;
  const DevicePass& pass_;
  const std::vector<Gap>& gaps_;
  const model::DeviceTimeline& device_;
  const read::Process& process_;
  const model::ProcessModel& owner_;
  GapEvidence evidence_;
  Ns begin_ = 0;
  Ns end_ = 0;
  Timeline timeline_;
};

}  // namespace

std::vector<Timeline> draw_timelines(const model::Model& model, const DevicePass& pass,
                                     const std::vector<Gap>& gaps) {
  std::vector<Timeline> timelines;
  if (pass.spans.empty()) return timelines;
  std::vector<size_t> order(pass.spans.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return pass.spans[a].duration_ns() < pass.spans[b].duration_ns();
  });
  Drawing drawing(model, pass, gaps);
  const model::DeviceStep& typical = pass.spans[order[order.size() / 2]];
  timelines.push_back(drawing.draw("typical", typical.begin_ns, typical.end_ns));
  if (order.size() > 1) {
    const model::DeviceStep& worst = pass.spans[order.back()];
    timelines.push_back(drawing.draw("worst", worst.begin_ns, worst.end_ns));
  }
  return timelines;
}

}  // namespace idlescope::diagnose
