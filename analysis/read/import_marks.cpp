#include "analysis/read/import_marks.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/read/plausible_time.h"

namespace idlescope::read {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::string_view kLoader = "enumerate(DataLoader)#";

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

int64_t number_of(std::string_view digits) {
  int64_t number = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// "step 12", "Iteration_3", "train_step#7", "batch: 4": a word of these and then only a number.
bool is_user_step(std::string_view name, int64_t& number) {
  const size_t last_word = name.find_last_not_of("0123456789");
  if (last_word == name.npos || last_word + 1 == name.size()) return false;
  std::string word;
  for (const char c : name.substr(0, last_word + 1)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (std::string_view(" _-#:=/").find(c) == std::string_view::npos) {
      return false;
    }
  }
  for (const std::string_view known :
       {"step", "iter", "iteration", "trainstep", "trainingstep", "globalstep", "batch"}) {
    if (word == known) {
      number = number_of(name.substr(last_word + 1));
      return true;
    }
  }
  return false;
}

}  // namespace

ImportMarks::Taken ImportMarks::take(std::string_view name, uint32_t thread_id, Ns begin_ns,
                                     Ns end_ns) {
  if (!plausible_span(begin_ns, end_ns)) return Taken::kNo;  // counted when it is added as a range
  if (starts_with(name, kProfilerStep)) {
    profiler_steps_.push_back({std::string(name), thread_id, begin_ns, end_ns,
                               number_of(name.substr(kProfilerStep.size()))});
    return Taken::kAlsoRange;
  }
  if (starts_with(name, kLoader)) {
    loader_.push_back({std::string(name), thread_id, begin_ns, end_ns});
    return Taken::kWhole;
  }
  if (starts_with(name, kOptimizerStep)) {
    HostEvent step;
    step.kind = trace::EVENT_STEP;
    step.thread_id = thread_id;
    step.begin_ns = step.end_ns = end_ns;
    step.a = trace::STEP_SOURCE_OPTIMIZER;
    step.c = builder_.strings().add(name.substr(kOptimizerStep.size()));
    builder_.saw(trace::KIND_STEP);
    builder_.add_event(step);
    return Taken::kAlsoRange;
  }
  return Taken::kNo;
}

bool ImportMarks::take_user_step(std::string_view name, uint32_t thread_id, Ns begin_ns,
                                 Ns end_ns) {
  int64_t number = -1;
  if (!plausible_span(begin_ns, end_ns) || !is_user_step(name, number)) return false;
  user_steps_.push_back({std::string(name), thread_id, begin_ns, end_ns, number});
  return true;
}

void ImportMarks::finish_steps(std::vector<Span>& spans, trace::StepSource source,
                               std::string_view label) {
  if (spans.empty()) return;
  builder_.saw(trace::KIND_STEP);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.begin_ns, a.end_ns) < std::tie(b.begin_ns, b.end_ns);
  });
  const auto mark = [&](const Span& span, Ns at_ns, int64_t number) {
    HostEvent step;
    step.kind = trace::EVENT_STEP;
    step.thread_id = span.thread_id;
    step.begin_ns = step.end_ns = at_ns;
    step.a = source;
    step.b = number;
    step.c = builder_.strings().add(label);
    builder_.add_event(step);
  };
  // A mark says "a step ended here". Steps follow each other without a gap, so only the first
  // needs one at its begin: there the step before it ended.
  mark(spans.front(), spans.front().begin_ns,
       spans.front().number > 0 ? spans.front().number - 1 : -1);
  for (const Span& span : spans) mark(span, span.end_ns, span.number);
}

void ImportMarks::finish_loader() {
  std::sort(loader_.begin(), loader_.end(), [](const Span& a, const Span& b) {
    return std::tie(a.begin_ns, a.end_ns) < std::tie(b.begin_ns, b.end_ns);
  });
  if (!loader_.empty()) builder_.saw(trace::KIND_LOADER);
  // One iterator per (thread, kind): epochs cannot be told apart.
  std::map<std::pair<uint32_t, std::string>, std::pair<uint32_t, int64_t>> iterators;
  for (const Span& span : loader_) {
    const auto [entry, inserted] = iterators.try_emplace(
        {span.thread_id, span.name},
        std::pair<uint32_t, int64_t>(static_cast<uint32_t>(iterators.size()) + 1, 0));
    auto& [iterator, batch] = entry->second;
    HostEvent event;
    event.thread_id = span.thread_id;
    event.iterator = iterator;
    if (inserted) {
      event.kind = trace::EVENT_LOADER_CREATE;
      event.begin_ns = event.end_ns = span.begin_ns;
      // The name tells 0 workers from some, not how many.
      event.a = span.name.find("_SingleProcess") != span.name.npos ? 0 : -1;
      event.c = trace::LOADER_FLAG_NONE;
      builder_.add_event(event);
    }
    event.kind = trace::EVENT_LOADER_NEXT;
    event.begin_ns = span.begin_ns;
    event.end_ns = span.end_ns;
    event.batch = batch++;
    event.a = event.b = event.c = -1;
    builder_.add_event(event);
  }
}

void ImportMarks::finish() {
  finish_steps(profiler_steps_, trace::STEP_SOURCE_PROFILER, "ProfilerStep");
  finish_steps(user_steps_, trace::STEP_SOURCE_NVTX, "NVTX");
  finish_loader();
}

}  // namespace idlescope::read
