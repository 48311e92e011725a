#include "profiler/host/around_call.h"

#include <cstring>

#include "profiler/emit/process_identity.h"
#include "profiler/host/fetch_context.h"
#include "profiler/host/frame_sampler.h"
#include "profiler/host/host_events.h"
#include "profiler/host/worker_clock.h"

namespace idlescope::host {
namespace {

thread_local FetchContext context;

// Fetches below this are read in full only once in kShortFetchPeriod: a full reading takes
// about 4 microseconds, twice a fetch.
constexpr int64_t kShortFetchNs = 200'000;
constexpr uint32_t kShortFetchPeriod = 8;
thread_local uint32_t short_fetches;  // in a row

FetchReading read_counters(bool in_full) {
  return in_full ? read_fetch_counters() : read_fetch_clocks();
}

// The job's exception, out of the way while code of ours runs.
class SavedError {
 public:
  SavedError() { python.PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SavedError() { python.PyErr_Restore(type_, value_, traceback_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;
  PyObject* type() const { return type_; }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

PyObject* call_around(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* original = python.PyTuple_GetItem(self, 0);
  PyObject* before = python.PyTuple_GetItem(self, 1);
  PyObject* after = python.PyTuple_GetItem(self, 2);
  PyObject* token = nullptr;
  if (before != python.none) {
    token = python.PyObject_Call(before, arguments, nullptr);
    if (token == nullptr) python.PyErr_Clear();
  }
  PyObject* result = python.PyObject_Call(original, arguments, keywords);
  if (after != python.none) {
    SavedError error;
    PyObject* none = python.none;
    PyObject* ignored = python.PyObject_CallFunctionObjArgs(
        after, token != nullptr ? token : none, arguments, result != nullptr ? result : none,
        error.type() != nullptr ? error.type() : none, nullptr);
    if (ignored == nullptr) {
      python.PyErr_Clear();
    } else {
      python.Py_DecRef(ignored);
    }
  }
  if (token != nullptr) python.Py_DecRef(token);
  return result;
}

// The same, bound to a module object that holds the parts.
PyObject* call_around_function(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* parts = python.PyObject_GetAttrString(self, "parts");
  if (parts == nullptr) return nullptr;  // somebody deleted it: AttributeError
  PyObject* result = call_around(parts, arguments, keywords);
  python.Py_DecRef(parts);
  return result;
}

// Samples in a batch: the length of the index list; one index without automatic batching.
int64_t samples_of(PyObject* arguments) {
  const PySsize count = python.PyTuple_Size(arguments);
  PyObject* index = count > 0 ? python.PyTuple_GetItem(arguments, count - 1) : nullptr;
  if (index == nullptr) {
    python.PyErr_Clear();
    return -1;
  }
  const PySsize size = python.PyObject_Size(index);
  if (size >= 0) return size;
  python.PyErr_Clear();
  return 1;
}

void write_fetch(const FetchReading& begin, const FetchReading& end, int64_t samples) {
  const FetchReading spent = difference(end, begin);
  Event event{.kind = EventKind::kWorkerFetch,
              .begin_ns = begin.wall_ns,
              .end_ns = end.wall_ns,
              .iterator = context.iterator,
              .epoch = context.epoch,
              .batch = context.batch,
              .a = samples,
              .b = context.collate_ns,
              .c = context.worker};
  if (!write_event(event)) return;
  event.kind = EventKind::kWorkerFetchCpu;
  event.a = spent.thread_cpu_ns;
  event.b = spent.process_cpu_ns;
  event.c = spent.run_delay_ns;
  write_event(event);
  if (spent.major_faults < 0 && spent.blocks_in < 0 && spent.bytes_read < 0) return;
  event.kind = EventKind::kWorkerFetchIo;
  event.a = spent.major_faults;
  event.b = spent.blocks_in;
  event.c = spent.bytes_read;
  write_event(event);
}

PyObject* call_fetch(PyObject* original, PyObject* arguments, PyObject* keywords) {
  if (!emit::recording_possible()) return python.PyObject_Call(original, arguments, keywords);
  const int64_t outer_collate_ns = context.collate_ns;
  context.collate_ns = 0;
  const bool in_full = short_fetches % kShortFetchPeriod == 0;
  const FetchReading begin = read_counters(in_full);
  const bool sampled = begin_frame_sample(begin.wall_ns);
  PyObject* result = python.PyObject_Call(original, arguments, keywords);
  FetchReading end = read_counters(in_full);
  // Read last here and first at the begin: the counters' stretch lies inside the wall's, so
  // that CPU and run-queue time never add up to more than it.
  end.wall_ns = emit::monotonic_ns();
  context.fetch_end_ns = end.wall_ns;
  short_fetches = end.wall_ns - begin.wall_ns < kShortFetchNs ? short_fetches + 1 : 0;
  if (sampled) end_frame_sample(end.wall_ns);
  // 0 samples: the fetch delivered nothing (the end of an iterable dataset, an exception).
  int64_t samples = 0;
  if (result != nullptr) samples = samples_of(arguments);
  write_fetch(begin, end, samples);
  if (sampled) {
    write_frame_sample(begin.wall_ns, end.wall_ns);
  } else {
    frame_sampler_saw(end.wall_ns - begin.wall_ns);
  }
  context.collate_ns = outer_collate_ns;
  return result;
}

PyObject* call_collate(PyObject* original, PyObject* arguments, PyObject* keywords) {
  const int64_t begin_ns = emit::monotonic_ns();
  PyObject* result = python.PyObject_Call(original, arguments, keywords);
  context.collate_ns += emit::monotonic_ns() - begin_ns;
  return result;
}

// Built-in functions keep a pointer to their definition for ever, so each wrapper has one of
// its own with the original's name. About 40 are made; a process that makes more shares one.
constexpr size_t kMaxDefinitions = 128;
constexpr size_t kMaxNameSize = 64;
// A signature for inspect.signature.
constexpr char kDoc[] = "(*args, **kwargs)\n--\n\n";
struct Definition {
  PyMethodDef method;
  char name[kMaxNameSize];
  char doc[kMaxNameSize + sizeof kDoc];
};
Definition definitions[kMaxDefinitions];
size_t definition_count = 0;  // guarded by the GIL; free-threaded builds patch at import only

using Implementation = PyObject* (*)(PyObject*, PyObject*, PyObject*);

PyObject* make_wrapper(Implementation implementation, PyObject* original, PyObject* state) {
  Definition& definition =
      definitions[definition_count < kMaxDefinitions - 1 ? definition_count++
                                                         : kMaxDefinitions - 1];
  PyObject* name = python.PyObject_GetAttrString(original, "__name__");
  PyObject* module = python.PyObject_GetAttrString(original, "__module__");
  PySsize size = 0;
  const char* text = name == nullptr ? nullptr : python.PyUnicode_AsUTF8AndSize(name, &size);
  if (python.PyErr_Occurred() != nullptr) python.PyErr_Clear();
  if (text == nullptr) text = "wrapped";
  strncpy(definition.name, text, sizeof definition.name - 1);
  strcpy(definition.doc, definition.name);
  strcat(definition.doc, kDoc);
  definition.method = {definition.name, reinterpret_cast<void*>(implementation),
                       kMethVarargsKeywords, definition.doc};
  PyObject* wrapper = python.PyCFunction_NewEx(&definition.method, state, module);
  if (name != nullptr) python.Py_DecRef(name);
  if (module != nullptr) python.Py_DecRef(module);
  return wrapper;
}

// collate_fn is wrapped once per fetcher, not once per process: one definition for all.
PyMethodDef collate_definition = {"collate_fn", nullptr, kMethVarargsKeywords,
                                  "collate_fn(*args, **kwargs)\n--\n\n"};

}  // namespace

FetchContext& fetch_context() { return context; }

PyObject* make_around(PyObject*, PyObject* const* arguments, PySsize count) {
  if (count != 3) return new_none();
  PyObject* parts = python.PyTuple_New(3);
  if (parts == nullptr) return nullptr;
  for (PySsize i = 0; i < 3; ++i) {
    python.Py_IncRef(arguments[i]);
    python.PyTuple_SetItem(parts, i, arguments[i]);
  }
  PyObject* wrapper = make_wrapper(call_around, arguments[0], parts);
  python.Py_DecRef(parts);
  return wrapper;
}

PyObject* make_around_function(PyObject*, PyObject* const* arguments, PySsize count) {
  if (count != 2) return new_none();
  return make_wrapper(call_around_function, arguments[1], arguments[0]);
}

PyObject* make_fetch(PyObject*, PyObject* original) {
  return make_wrapper(call_fetch, original, original);
}

PyObject* make_collate(PyObject*, PyObject* original) {
  collate_definition.function = reinterpret_cast<void*>(call_collate);
  return python.PyCFunction_NewEx(&collate_definition, original, nullptr);
}

PyObject* make_method(PyObject*, PyObject* function) {
  return python.PyInstanceMethod_New(function);
}

}  // namespace idlescope::host
