#include "profiler/host/host_events.h"

#include <cstring>

#include "profiler/emit/process_identity.h"
#include "tests/unit/emit/recorded_file.h"

namespace idlescope::host {
namespace {

int64_t steps_heard = 0;
int64_t batches_heard = 0;

class HostEventsTest : public emit::RecordedFile {
 protected:
  void configure() const {
    strcpy(emit::identity().host, "test-host");
    emit::configure_trace_file({output_.c_str(), 0, false}, nullptr);
  }
};

TEST_F(HostEventsTest, WritesEveryField) {
  EXPECT_EQ(in_child([&] {
              configure();
              EXPECT_TRUE(write_event({.kind = EventKind::kWorkerFetch,
                                       .begin_ns = 10,
                                       .end_ns = 30,
                                       .iterator = 4,
                                       .epoch = 5,
                                       .batch = 6,
                                       .a = 7,
                                       .b = -8,
                                       .c = 9}));
            }),
            0);
  const auto records = emit::committed(parsed(files().at(0)));
  ASSERT_EQ(records.size(), 1u);
  const emit::PlainRecord& record = records[0];
  EXPECT_EQ(record.commit, static_cast<uint32_t>(trace::EVENT_WORKER_FETCH));
  EXPECT_NE(record.thread_id, 0u);
  EXPECT_EQ(record.begin_ns, 10);
  EXPECT_EQ(record.end_ns, 30);
  EXPECT_EQ(record.iterator, 4u);
  EXPECT_EQ(record.epoch, 5u);
  EXPECT_EQ(record.batch, 6);
  EXPECT_EQ(record.a, 7);
  EXPECT_EQ(record.b, -8);
  EXPECT_EQ(record.c, 9);
}

// The contract's numbers and ours are the same.
TEST(EventKindTest, AgreesWithTheContract) {
  const std::pair<EventKind, trace::HostEventKind> pairs[] = {
      {EventKind::kLoaderCreate, trace::EVENT_LOADER_CREATE},
      {EventKind::kLoaderNext, trace::EVENT_LOADER_NEXT},
      {EventKind::kLoaderWait, trace::EVENT_LOADER_WAIT},
      {EventKind::kLoaderEnd, trace::EVENT_LOADER_END},
      {EventKind::kLoaderReset, trace::EVENT_LOADER_RESET},
      {EventKind::kLoaderIndex, trace::EVENT_LOADER_INDEX},
      {EventKind::kLoaderShutdown, trace::EVENT_LOADER_SHUTDOWN},
      {EventKind::kLoaderWorkerStarted, trace::EVENT_LOADER_WORKER_STARTED},
      {EventKind::kLoaderSite, trace::EVENT_LOADER_SITE},
      {EventKind::kLoaderUnseen, trace::EVENT_LOADER_UNSEEN},
      {EventKind::kLoaderPinInline, trace::EVENT_LOADER_PIN_INLINE},
      {EventKind::kWorkerLoop, trace::EVENT_WORKER_LOOP},
      {EventKind::kWorkerIndexWait, trace::EVENT_WORKER_INDEX_WAIT},
      {EventKind::kWorkerFetch, trace::EVENT_WORKER_FETCH},
      {EventKind::kWorkerFetchCpu, trace::EVENT_WORKER_FETCH_CPU},
      {EventKind::kWorkerFetchIo, trace::EVENT_WORKER_FETCH_IO},
      {EventKind::kWorkerPut, trace::EVENT_WORKER_PUT},
      {EventKind::kWorkerPickle, trace::EVENT_WORKER_PICKLE},
      {EventKind::kWorkerExit, trace::EVENT_WORKER_EXIT},
      {EventKind::kWorkerFrame, trace::EVENT_WORKER_FRAME},
      {EventKind::kWorkerEmpty, trace::EVENT_WORKER_EMPTY},
      {EventKind::kWorkerDataset, trace::EVENT_WORKER_DATASET},
      {EventKind::kPinWait, trace::EVENT_PIN_WAIT},
      {EventKind::kPinCopy, trace::EVENT_PIN_COPY},
      {EventKind::kPinPut, trace::EVENT_PIN_PUT},
      {EventKind::kStep, trace::EVENT_STEP},
      {EventKind::kRange, trace::EVENT_RANGE},
      {EventKind::kMark, trace::EVENT_MARK},
      {EventKind::kGc, trace::EVENT_GC},
      {EventKind::kCheckpoint, trace::EVENT_CHECKPOINT},
      {EventKind::kOtherProfiler, trace::EVENT_OTHER_PROFILER},
      {EventKind::kCapture, trace::EVENT_CAPTURE},
      {EventKind::kThreadCpu, trace::EVENT_THREAD_CPU},
      {EventKind::kNotebookCell, trace::EVENT_NOTEBOOK_CELL},
  };
  for (const auto& [ours, contract] : pairs) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(contract));
  }
}

TEST_F(HostEventsTest, StepsAreNumberedPerProcessAndHeard) {
  EXPECT_EQ(in_child([&] {
              configure();
              set_listener(
                  {[](int64_t, bool from_loader) { ++(from_loader ? batches_heard : steps_heard); },
                   [](bool) {}, [](bool) {}, [](bool) {}, false});
              step_ended(100, 1, 0);
              step_ended(200, 1, 0);
              batch_delivered(300);
              EXPECT_EQ(step_count(), 2u);
              EXPECT_EQ(steps_heard, 2);
              EXPECT_EQ(batches_heard, 1);
              const pid_t child = fork();
              if (child == 0) {
                step_ended(400, 1, 0);
                _exit(step_count() == 1 ? 0 : 1);
              }
              int status = 0;
              waitpid(child, &status, 0);
              EXPECT_EQ(status, 0);
            }),
            0);
  ASSERT_EQ(files().size(), 2u);
}

}  // namespace
}  // namespace idlescope::host
