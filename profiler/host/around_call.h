// Wraps a callable of the job without a Python frame of ours around it.
//
//   around(original, before, after)   before(*args) → token; original(*args, **kwargs);
//                                     after(token, args, result, error type)
//   fetch(original)                   the fetch of a batch, with counters (worker_clock.h)
//   collate(original)                 adds the time of collate_fn to the running fetch
//
// The result is a built-in function: tracebacks, warnings' stack levels and the call stack of
// the job are what they are without us. What `before` and `after` raise is dropped; what the
// original raises passes through unchanged. GIL held.
#pragma once

#include "profiler/host/python_api.h"

namespace idlescope::host {

// PyMethodDefs of the makers, for add_snippet_functions.
PyObject* make_around(PyObject* self, PyObject* const* arguments, PySsize count);
// For functions of a module, which pickle must find by name: (state module, original).
PyObject* make_around_function(PyObject* self, PyObject* const* arguments, PySsize count);
PyObject* make_fetch(PyObject* self, PyObject* original);
PyObject* make_collate(PyObject* self, PyObject* original);
// A built-in function as a method: binds its first argument as a Python function would.
PyObject* make_method(PyObject* self, PyObject* function);

}  // namespace idlescope::host
