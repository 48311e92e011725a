#include "profiler/host/python_functions.h"

#include <unistd.h>

#include <cstring>

#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/around_call.h"
#include "profiler/host/fetch_context.h"
#include "profiler/host/frame_sampler.h"
#include "profiler/host/host_events.h"
#include "profiler/host/process_counters.h"
#include "profiler/host/worker_clock.h"

namespace idlescope::host {
namespace {

int64_t integer(PyObject* const* arguments, PySsize count, PySsize index) {
  if (index >= count) return 0;
  const long long value = python.PyLong_AsLongLong(arguments[index]);
  if (value == -1 && python.PyErr_Occurred() != nullptr) {
    python.PyErr_Clear();
    return 0;
  }
  return value;
}

// now() → CLOCK_MONOTONIC in ns
PyObject* now(PyObject*, PyObject*) { return python.PyLong_FromLongLong(emit::monotonic_ns()); }

// event(kind, begin, iterator, epoch, batch, a, b, c[, end]); end: now
PyObject* event(PyObject*, PyObject* const* arguments, PySsize count) {
  const int64_t end_ns = count > 8 ? integer(arguments, count, 8) : emit::monotonic_ns();
  write_event({.kind = static_cast<EventKind>(integer(arguments, count, 0)),
               .begin_ns = integer(arguments, count, 1),
               .end_ns = end_ns,
               .iterator = static_cast<uint32_t>(integer(arguments, count, 2)),
               .epoch = static_cast<uint32_t>(integer(arguments, count, 3)),
               .batch = integer(arguments, count, 4),
               .a = integer(arguments, count, 5),
               .b = integer(arguments, count, 6),
               .c = integer(arguments, count, 7)});
  return new_none();
}

// name(text) → id in this process's file
PyObject* name(PyObject*, PyObject* text) {
  PySsize size = 0;
  const char* bytes = python.PyUnicode_AsUTF8AndSize(text, &size);
  if (bytes == nullptr) {
    python.PyErr_Clear();
    return python.PyLong_FromLongLong(0);
  }
  return python.PyLong_FromLongLong(emit::name_id(bytes, static_cast<size_t>(size)));
}

// context(iterator, epoch, batch, worker): what the next fetch on this thread belongs to
PyObject* context(PyObject*, PyObject* const* arguments, PySsize count) {
  FetchContext& mine = fetch_context();
  mine.iterator = static_cast<uint32_t>(integer(arguments, count, 0));
  mine.epoch = static_cast<uint32_t>(integer(arguments, count, 1));
  mine.batch = integer(arguments, count, 2);
  mine.worker = integer(arguments, count, 3);
  return new_none();
}

// batch(index): the same, only the batch
PyObject* batch(PyObject*, PyObject* index) {
  fetch_context().batch = integer(&index, 1, 0);
  return new_none();
}

// fetch_end(): when the last fetch on this thread ended
PyObject* fetch_end(PyObject*, PyObject*) {
  return python.PyLong_FromLongLong(fetch_context().fetch_end_ns);
}

// step(source, label): a training step ended now
PyObject* step(PyObject*, PyObject* const* arguments, PySsize count) {
  step_ended(emit::monotonic_ns(), integer(arguments, count, 0),
             static_cast<uint32_t>(integer(arguments, count, 1)));
  return new_none();
}

// delivered(): a batch was handed to the training loop; also samples the thread's CPU clock
PyObject* delivered(PyObject*, PyObject*) {
  const int64_t now_ns = emit::monotonic_ns();
  batch_delivered(now_ns);
  return new_none();
}

// thread_cpu(): EVENT_THREAD_CPU of this thread
PyObject* thread_cpu(PyObject*, PyObject*) {
  const int64_t now_ns = emit::monotonic_ns();
  write_event(
      {.kind = EventKind::kThreadCpu, .begin_ns = now_ns, .end_ns = now_ns, .a = thread_cpu_ns()});
  return new_none();
}

PyObject* process_id(PyObject*, PyObject*) { return python.PyLong_FromLongLong(getpid()); }

// generation(): changes when this process has another file than before (fork)
PyObject* generation(PyObject*, PyObject*) {
  return python.PyLong_FromLongLong(emit::file_generation());
}

PyObject* frames_wanted(PyObject*, PyObject*) {
  return python.PyLong_FromLongLong(listener().sample_frames ? 1 : 0);
}

// has_file(): this process has had an event
PyObject* has_file(PyObject*, PyObject*) {
  return python.PyLong_FromLongLong(emit::trace_path()[0] != '\0' ? 1 : 0);
}

// role(number): Process.Role of the file that the next event makes
PyObject* role(PyObject*, PyObject* number) {
  emit::identity().role = static_cast<emit::Role>(integer(&number, 1, 0));
  return new_none();
}

// torch_version(text), before the first event
PyObject* torch_version(PyObject*, PyObject* text) {
  PySsize size = 0;
  const char* bytes = python.PyUnicode_AsUTF8AndSize(text, &size);
  if (bytes == nullptr) {
    python.PyErr_Clear();
  } else {
    char* out = emit::identity().torch_version;
    strncpy(out, bytes, sizeof emit::identity().torch_version - 1);
  }
  return new_none();
}

// capture(begins), compile(begins), other_profiler(starts)
PyObject* capture(PyObject*, PyObject* begins) {
  listener().capture(integer(&begins, 1, 0) != 0);
  return new_none();
}
PyObject* compile(PyObject*, PyObject* begins) {
  listener().compile(integer(&begins, 1, 0) != 0);
  return new_none();
}
PyObject* other_profiler(PyObject*, PyObject* starts) {
  listener().other_profiler(integer(&starts, 1, 0) != 0);
  return new_none();
}

// worker_process(pid): a child whose CPU time counts to this process's tree
PyObject* worker_process(PyObject*, PyObject* pid) {
  worker_process_started(integer(&pid, 1, 0));
  return new_none();
}

// sample_frames(sys.getprofile)
PyObject* sample_frames(PyObject*, PyObject* get_profile) {
  enable_frame_sampler(get_profile);
  return new_none();
}

// worker_ends(): closes what this thread kept open
PyObject* worker_ends(PyObject*, PyObject*) {
  forget_thread_files();
  return new_none();
}

template <typename Function>
PyMethodDef define(const char* text, Function* function, int flags) {
  return {text, reinterpret_cast<void*>(function), flags, nullptr};
}

}  // namespace

bool add_snippet_functions(PyObject* globals) {
  static PyMethodDef definitions[] = {
      define("_now", now, kMethNoArguments),
      define("_event", event, kMethFastcall),
      define("_name", name, kMethOneArgument),
      define("_context", context, kMethFastcall),
      define("_batch", batch, kMethOneArgument),
      define("_fetch_end", fetch_end, kMethNoArguments),
      define("_step", step, kMethFastcall),
      define("_delivered", delivered, kMethNoArguments),
      define("_thread_cpu", thread_cpu, kMethNoArguments),
      define("_process_id", process_id, kMethNoArguments),
      define("_generation", generation, kMethNoArguments),
      define("_frames_wanted", frames_wanted, kMethNoArguments),
      define("_has_file", has_file, kMethNoArguments),
      define("_role", role, kMethOneArgument),
      define("_torch_version", torch_version, kMethOneArgument),
      define("_capture", capture, kMethOneArgument),
      define("_compile", compile, kMethOneArgument),
      define("_other_profiler", other_profiler, kMethOneArgument),
      define("_worker_process", worker_process, kMethOneArgument),
      define("_sample_frames", sample_frames, kMethOneArgument),
      define("_worker_ends", worker_ends, kMethNoArguments),
      define("_around", make_around, kMethFastcall),
      define("_around_function", make_around_function, kMethFastcall),
      define("_fetch", make_fetch, kMethOneArgument),
      define("_collate", make_collate, kMethOneArgument),
      define("_method", make_method, kMethOneArgument),
  };
  for (PyMethodDef& definition : definitions) {
    PyObject* function = python.PyCFunction_NewEx(&definition, nullptr, nullptr);
    if (function == nullptr) return false;
    const int failed = python.PyDict_SetItemString(globals, definition.name, function);
    python.Py_DecRef(function);
    if (failed != 0) return false;
  }
  return true;
}

}  // namespace idlescope::host
