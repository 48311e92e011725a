// One sentence for one thing that happened: a long wait, a kind of stall.
#include "analysis/report/kernel_name.h"
#include "analysis/report/sentences.h"
#include "proto/messages.h"

namespace idlescope::report {

namespace {

// "main thread" and "thread 12" are words of ours, to be translated; other names are the job's.
Say& with_thread(Say&& say, const std::string& name) {
  if (name.empty() || name == messages::kThreadMain.text) {
    return say.nested("thread", messages::kThreadMain);
  }
  if (name.compare(0, 7, "thread ") == 0) {
    return say.with("number", name.substr(7)).nested("thread", messages::kLaneThread);
  }
  return say.with("thread", name);
}

}  // namespace

Text gap_words(const diagnose::Gap& gap) {
  const std::string length = duration(gap.end_ns - gap.begin_ns);
  if (gap.batch >= 0 && verdict_of(gap.top_leaf) == DATA) {
    if (gap.worker >= 0 && gap.worker_since_ns > 0 && gap.worker_since_ns <= gap.end_ns) {
      return with_thread(Say(messages::kGapBatch), gap.thread)
          .with("gap", length)
          .with("batch", std::to_string(gap.batch))
          .with("worker", std::to_string(gap.worker))
          .with("since", duration(gap.end_ns - gap.worker_since_ns));
    }
    return with_thread(Say(messages::kGapBatchPlain), gap.thread)
        .with("gap", length)
        .with("batch", std::to_string(gap.batch));
  }
  if (!gap.doing.empty()) {
    return with_thread(Say(messages::kGapDoing), gap.thread)
        .with("gap", length)
        .with("doing", plain_call_name(gap.doing))
        .nested("why", leaf_words(gap.top_leaf));
  }
  return Say(messages::kGapWhy).with("gap", length).nested("why", leaf_words(gap.top_leaf));
}

Text longest_wait_words(const diagnose::Gap& gap) {
  return with_thread(Say(messages::kGapDetail), gap.thread)
      .with("gap", duration(gap.end_ns - gap.begin_ns))
      .with("doing", plain_call_name(gap.doing));
}

Text stall_words(const diagnose::RunStall& stall) {
  const bool regular = stall.period_steps > 0;
  Say say(regular ? messages::kPeriodicEvery : messages::kPeriodicDetail);
  if (stall.what.empty()) {
    say.nested("what", leaf_words(stall.leaf));
  } else {
    say.with("what", stall.what);
  }
  if (regular) {
    say.with("period", decimal(stall.period_steps, 0));
  } else {
    say.counted("count", "times", stall.count, messages::kOnce, messages::kTimes);
  }
  return say.with("each", duration(stall.mean_ns))
      .with("total", duration(stall.total_ns))
      .with("share", percent(stall.share_of_run));
}

}  // namespace idlescope::report
