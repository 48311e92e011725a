#include "profiler/cuda/call_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace idlescope::cuda {
namespace {

std::unique_ptr<CallLog> make_log() {
  auto log = std::make_unique<CallLog>();
  log->init();
  return log;
}

void write(CallLog* log, uint32_t window, uint32_t correlation) {
  ThreadSlot* slot = log->enter();
  ASSERT_NE(slot, nullptr);
  CallRecord* record = log->next_record(slot, window);
  ASSERT_NE(record, nullptr);
  record->correlation_id = correlation;
  CallLog::commit(slot);
  CallLog::leave(slot);
}

TEST(IndexStack, IsLastInFirstOut) {
  std::atomic<uint32_t> next[3] = {};
  IndexStack stack;
  const auto link = [&](uint32_t i) { return &next[i]; };
  EXPECT_EQ(stack.pop(link), IndexStack::kNone);
  for (uint32_t i = 0; i < 3; ++i) stack.push(i, &next[i]);
  EXPECT_EQ(stack.pop(link), 2u);
  EXPECT_EQ(stack.pop(link), 1u);
  stack.push(2, &next[2]);
  EXPECT_EQ(stack.pop(link), 2u);
  EXPECT_EQ(stack.pop(link), 0u);
  EXPECT_TRUE(stack.empty());
}

TEST(IndexStack, ThreadsLoseAndDuplicateNothing) {
  constexpr uint32_t kSlots = 64;
  static std::atomic<uint32_t> next[kSlots];
  static std::atomic<uint32_t> held[kSlots];
  IndexStack stack;
  for (uint32_t i = 0; i < kSlots; ++i) {
    held[i] = 0;
    stack.push(i, &next[i]);
  }
  std::vector<std::thread> threads;
  std::atomic<bool> doubled{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20000; ++n) {
        const uint32_t index = stack.pop([](uint32_t i) { return &next[i]; });
        if (index == IndexStack::kNone) continue;
        if (held[index].exchange(1) != 0) doubled = true;
        held[index] = 0;
        stack.push(index, &next[index]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(doubled);
  uint32_t left = 0;
  while (stack.pop([](uint32_t i) { return &next[i]; }) != IndexStack::kNone) ++left;
  EXPECT_EQ(left, kSlots);
}

// One log per process is the product's rule (a thread remembers its slot): the tests below
// run in threads of their own.
void in_thread(const std::function<void()>& body) { std::thread(body).join(); }

TEST(CallLog, KeepsOrderOverManyChunks) {
  const auto log = make_log();
  in_thread([&] {
    for (uint32_t i = 1; i <= 5000; ++i) write(log.get(), 3, i);
  });
  uint32_t expected = 1;
  const uint64_t count =
      log->drain([&](const CallRecord& record, uint32_t thread, uint32_t window) {
        EXPECT_EQ(record.correlation_id, expected++);
        EXPECT_EQ(window, 3u);
        EXPECT_NE(thread, 0u);
      });
  EXPECT_EQ(count, 5000u);
  EXPECT_EQ(log->drain([](const CallRecord&, uint32_t, uint32_t) {}), 0u);
}

TEST(CallLog, NewWindowTakesANewChunk) {
  const auto log = make_log();
  in_thread([&] {
    write(log.get(), 1, 10);
    write(log.get(), 2, 10);
  });
  std::map<uint32_t, int> by_window;
  log->drain([&](const CallRecord&, uint32_t, uint32_t window) { ++by_window[window]; });
  EXPECT_EQ(by_window, (std::map<uint32_t, int>{{1, 1}, {2, 1}}));
}

TEST(CallLog, DrainsWhileThreadsWriteAndEnd) {
  const auto log = make_log();
  log->keep_free(4);
  std::atomic<bool> stop{false};
  std::map<uint32_t, uint64_t> sum;  // by thread
  uint64_t taken = 0;
  const auto take = [&](const CallRecord& record, uint32_t thread, uint32_t) {
    sum[thread] += record.correlation_id;
    ++taken;
  };
  std::thread writers([&] {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (uint32_t i = 1; i <= 1500; ++i) write(log.get(), 1, i);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    stop = true;
  });
  while (!stop) {
    log->drain(take);
    log->keep_free(2);
  }
  writers.join();
  log->drain(take);
  EXPECT_EQ(taken, 20u * 4 * 1500);
  EXPECT_EQ(sum.size(), 80u);
  for (const auto& [thread, total] : sum) EXPECT_EQ(total, 1500u * 1501 / 2) << thread;
  EXPECT_EQ(log->take_lost(), 0u);
}

TEST(CallLog, KnowsWhoIsInside) {
  const auto log = make_log();
  in_thread([&] {
    EXPECT_TRUE(log->quiet());
    ThreadSlot* slot = log->enter();
    EXPECT_FALSE(log->quiet());
    CallLog::leave(slot);
    EXPECT_TRUE(log->quiet());
    log->enter();
    log->forget_after_fork();
    EXPECT_TRUE(log->quiet());
  });
}

TEST(CallLog, OwnThreadHasNoSlot) {
  const auto log = make_log();
  in_thread([&] {
    CallLog::mark_own_thread(true);
    EXPECT_EQ(log->enter(), nullptr);
    CallLog::mark_own_thread(false);
  });
}

}  // namespace
}  // namespace idlescope::cuda
