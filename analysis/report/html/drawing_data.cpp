// The JSON block behind the drawings: only what is drawn, times relative to the drawing.
//
// Bars too narrow to see at full width are merged with their neighbours ("12 kernels"), steps
// are thinned to a few a pixel column: the size of a report does not grow with its trace.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/report/html/page_parts.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Finest time of a drawing: its span by this many.
constexpr int64_t kFinest = 3000;
constexpr size_t kMostBarsOfALane = 2000;
constexpr int kMostDots = 12000;

class Labels {
 public:
  size_t index(const std::string& label) {
    const auto [entry, added] = index_.emplace(label, index_.size());
    if (added) order_.push_back(label);
    return entry->second;
  }
  const std::vector<std::string>& all() const { return order_; }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::string> order_;
};

struct Drawn {
  int64_t begin;
  int64_t end;
  std::string label;
  Leaf leaf;
  int64_t batch;
  int32_t gap;
  double value;
  uint64_t merged = 1;
};

std::vector<Drawn> drawn_bars(const TypicalStep& timeline, const Lane& lane) {
  std::vector<Drawn> bars;
  for (const Bar& bar : lane.bar()) {
    if (bar.end_ns() < timeline.begin_ns() || bar.begin_ns() > timeline.end_ns()) continue;
    bars.push_back({std::max(bar.begin_ns(), timeline.begin_ns()),
                    std::min(bar.end_ns(), timeline.end_ns()), bar.label(), bar.leaf(), bar.batch(),
                    bar.gap_index(), bar.value()});
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Drawn& a, const Drawn& b) { return a.begin < b.begin; });
  if (lane.group() == "queue") return bars;
  // Merge what touches within one finest step, coarser until the lane is small enough.
  for (int64_t finest = std::max<int64_t>(1, (timeline.end_ns() - timeline.begin_ns()) / kFinest);;
       finest *= 2) {
    std::vector<Drawn> merged;
    for (const Drawn& bar : bars) {
      Drawn* last = merged.empty() ? nullptr : &merged.back();
      if (last && bar.begin - last->end < finest && bar.leaf == last->leaf &&
          bar.batch == last->batch &&
          (bar.end - bar.begin < finest || last->end - last->begin < finest)) {
        last->end = std::max(last->end, bar.end);
        last->merged += bar.merged;
        if (last->gap < 0) last->gap = bar.gap;
        continue;
      }
      merged.push_back(bar);
    }
    if (merged.size() <= kMostBarsOfALane) return merged;
    bars = std::move(merged);
  }
}

// The analyzer names lanes in English.
std::string lane_name(const Lane& lane, Language language) {
  const std::string& name = lane.name();
  if (lane.group() == "cause") return render(messages::kLaneCause, language);
  if (lane.group() == "copy") return render(messages::kLaneCopies, language);
  if (lane.group() == "queue") return render(messages::kLaneReady, language);
  if (lane.group() == "pin") return render(messages::kLanePin, language);
  if (name == messages::kThreadMain.text) return render(messages::kThreadMain, language);
  const size_t space = name.rfind(' ');
  if (space == name.npos) return name;
  const messages::Message* numbered = name.compare(0, space, "thread") == 0 ? &messages::kLaneThread
                                      : name.compare(0, space, "worker") == 0
                                          ? &messages::kLaneWorker
                                          : nullptr;
  if (!numbered) return name;
  return messages::fill(render(*numbered, language), {{"number", name.substr(space + 1)}});
}

std::string timeline_json(const TypicalStep& timeline, Language language, Labels* labels) {
  std::string out =
      fmt::format(R"({{"which":"{}","begin":{},"span":{},"lanes":[)", escape_json(timeline.which()),
                  timeline.begin_ns(), timeline.end_ns() - timeline.begin_ns());
  bool first_lane = true;
  for (const Lane& lane : timeline.lane()) {
    out += fmt::format(R"({}{{"name":"{}","group":"{}","bars":[)", first_lane ? "" : ",",
                       escape_json(lane_name(lane, language)), escape_json(lane.group()));
    first_lane = false;
    bool first = true;
    for (const Drawn& bar : drawn_bars(timeline, lane)) {
      // Causes in plain words, whatever the analyzer called them.
      const std::string name = lane.group() == "cause" && bar.leaf != LEAF_UNSPECIFIED
                                   ? render(leaf_words(bar.leaf), language)
                                   : bar.label;
      const std::string label = bar.merged > 1
                                    ? messages::fill(render(messages::kMergedBars, language),
                                                     {{"count", count(bar.merged)}, {"name", name}})
                                    : name;
      out += fmt::format("{}[{},{},{},{},{},{},{:.6g}]", first ? "" : ",",
                         bar.begin - timeline.begin_ns(), bar.end - timeline.begin_ns(),
                         labels->index(label), static_cast<int>(bar.leaf), bar.batch, bar.gap,
                         bar.value);
      first = false;
    }
    out += "]}";
  }
  return out + "]}";
}

// Every step, or the lowest, middle and highest of each column.
std::vector<int> drawn_steps(const Report& report) {
  std::vector<int> out;
  const int all = report.step_points_size();
  if (all <= kMostDots) {
    for (int i = 0; i < all; ++i) out.push_back(i);
    return out;
  }
  const int columns = kMostDots / 3;
  for (int column = 0; column < columns; ++column) {
    const auto from = static_cast<int>(static_cast<int64_t>(all) * column / columns);
    const auto to = static_cast<int>(static_cast<int64_t>(all) * (column + 1) / columns);
    int low = from;
    int high = from;
    for (int i = from; i < to; ++i) {
      const StepPoint& point = report.step_points(i);
      if (point.duration_ns() < report.step_points(low).duration_ns()) low = i;
      if (point.duration_ns() > report.step_points(high).duration_ns()) high = i;
      if (!point.mark().empty()) out.push_back(i);
    }
    out.push_back(low);
    out.push_back(from + (to - from) / 2);
    out.push_back(high);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string quoted(const std::string& text) { return "\"" + escape_json(text) + "\""; }

}  // namespace

std::string drawing_data(const Report& report, Language language) {
  Labels labels;
  std::string out = "{\"timelines\":[";
  for (int i = 0; i < report.timelines_size(); ++i) {
    out += (i ? "," : "") + timeline_json(report.timelines(i), language, &labels);
  }
  out += "],\"labels\":[";
  for (size_t i = 0; i < labels.all().size(); ++i) out += (i ? "," : "") + quoted(labels.all()[i]);
  out += "],\"gaps\":[";
  for (int i = 0; i < report.gaps_size(); ++i) {
    const Gap& gap = report.gaps(i);
    out += fmt::format(R"({}{{"ns":{},"begin":{},"step":{},"batch":{},"text":{},"colour":"{}"}})",
                       i ? "," : "", gap.end_ns() - gap.begin_ns(), gap.begin_ns(), gap.step(),
                       gap.batch(), quoted(render(gap.text(), language)),
                       colour_class(verdict_of(gap.top_leaf())));
  }
  out += "],\"leaves\":{";
  bool first = true;
  for (int leaf = Leaf_MIN; leaf <= Leaf_MAX; ++leaf) {
    if (!Leaf_IsValid(leaf) || leaf == LEAF_UNSPECIFIED) continue;
    out += fmt::format("{}\"{}\":[{},\"{}\"]", first ? "" : ",", leaf,
                       quoted(render(leaf_words(static_cast<Leaf>(leaf)), language)),
                       colour_class(verdict_of(static_cast<Leaf>(leaf))));
    first = false;
  }
  out += "},\"steps\":[";
  const int64_t begin = report.step_points().empty() ? 0 : report.step_points(0).begin_ns();
  first = true;
  for (const int i : drawn_steps(report)) {
    const StepPoint& point = report.step_points(i);
    out += fmt::format("{}[{},{},{},{},{},{}]", first ? "" : ",", i, point.begin_ns() - begin,
                       point.duration_ns(), point.window_id(), point.data_wait_ns(),
                       quoted(point.mark()));
    first = false;
  }
  out += "],\"curve\":[";
  for (int i = 0; i < report.worker_curve_size(); ++i) {
    const SpeedCurvePoint& point = report.worker_curve(i);
    out += fmt::format("{}[{},{},{:.0f},{:.0f},{}]", i ? "," : "", point.num_workers(),
                       point.step_ns(),
                       point.has_ci() ? point.ci().low() : static_cast<double>(point.step_ns()),
                       point.has_ci() ? point.ci().high() : static_cast<double>(point.step_ns()),
                       point.now() ? 1 : 0);
  }
  out += fmt::format("],\"mean\":{},\"median\":{},\"cores\":{:.0f},\"words\":{{",
                     report.run().mean_step_ns(), report.run().median_step_ns(),
                     report.loader().cores());
  first = true;
  for (const messages::Message* message :
       {&messages::kCopiedButton, &messages::kStepHide, &messages::kAxisTime, &messages::kShowAll,
        &messages::kShowFewer, &messages::kAxisLoaderTime, &messages::kStepLabel,
        &messages::kDotsLabel, &messages::kAxisStepTime, &messages::kAxisRunTime,
        &messages::kAxisCores, &messages::kAxisNow, &messages::kTipStep, &messages::kTipNoWindow,
        &messages::kWhichTypical, &messages::kWhichWorst, &messages::kColWorkers,
        &messages::kFactMean, &messages::kFactMedian}) {
    out += fmt::format("{}\"{}\":{}", first ? "" : ",", message->id,
                       quoted(render(*message, language)));
    first = false;
  }
  return out + "}}";
}

}  // namespace idlescope::report
