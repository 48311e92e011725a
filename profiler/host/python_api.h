// The functions of CPython's C API that the recorder uses, looked up at run time.
//
// Objects are opaque; only functions are used, never macros or struct fields, so that one
// library serves CPython 3.8 to 3.14, debug and free-threaded builds. Everything here needs
// the GIL (an attached thread state) unless a comment says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct _object;
struct _frame;
}

namespace idlescope::host {

using PyObject = _object;
using PyFrame = _frame;
using PySsize = std::ptrdiff_t;

struct PyMethodDef {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};
inline constexpr int kMethVarargsKeywords = 0x0001 | 0x0002;
inline constexpr int kMethNoArguments = 0x0004;
inline constexpr int kMethOneArgument = 0x0008;
inline constexpr int kMethFastcall = 0x0080;

inline constexpr int kPyFileInput = 257;

using AuditHook = int (*)(const char* event, PyObject* arguments, void* data);
using ProfileFunction = int (*)(PyObject* self, PyFrame* frame, int what, PyObject* argument);

#define IDLESCOPE_PYTHON_API(X)                                         \
  X(int, PySys_AddAuditHook, (AuditHook, void*))                        \
  X(int, Py_IsInitialized, ())                                          \
  X(const char*, Py_GetVersion, ())                                     \
  X(int, Py_AddPendingCall, (int (*)(void*), void*))                    \
  X(void, Py_IncRef, (PyObject*))                                       \
  X(void, Py_DecRef, (PyObject*))                                       \
  X(PyObject*, PyDict_New, ())                                          \
  X(int, PyDict_SetItemString, (PyObject*, const char*, PyObject*))     \
  X(PyObject*, PyEval_GetBuiltins, ())                                  \
  X(PyObject*, Py_CompileString, (const char*, const char*, int))       \
  X(PyObject*, PyEval_EvalCode, (PyObject*, PyObject*, PyObject*))      \
  X(PyObject*, PyCFunction_NewEx, (PyMethodDef*, PyObject*, PyObject*)) \
  X(PyObject*, PyInstanceMethod_New, (PyObject*))                       \
  X(PyObject*, PyObject_Call, (PyObject*, PyObject*, PyObject*))        \
  X(PyObject*, PyObject_CallFunctionObjArgs, (PyObject*, ...))          \
  X(PyObject*, PyObject_GetAttrString, (PyObject*, const char*))        \
  X(PySsize, PyObject_Size, (PyObject*))                                \
  X(PyObject*, PyTuple_New, (PySsize))                                  \
  X(int, PyTuple_SetItem, (PyObject*, PySsize, PyObject*))              \
  X(PyObject*, PyTuple_GetItem, (PyObject*, PySsize))                   \
  X(PySsize, PyTuple_Size, (PyObject*))                                 \
  X(long long, PyLong_AsLongLong, (PyObject*))                          \
  X(PyObject*, PyLong_FromLongLong, (long long))                        \
  X(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, PySsize*))        \
  X(PyObject*, PyUnicode_FromString, (const char*))                     \
  X(PyObject*, PyErr_Occurred, ())                                      \
  X(void, PyErr_Clear, ())                                              \
  X(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))            \
  X(void, PyErr_Restore, (PyObject*, PyObject*, PyObject*))             \
  X(void, PyErr_SetString, (PyObject*, const char*))                    \
  X(int, PyErr_GivenExceptionMatches, (PyObject*, PyObject*))           \
  X(void, PyEval_SetProfile, (ProfileFunction, PyObject*))

struct PythonApi {
#define IDLESCOPE_DECLARE(result, name, arguments) result(*name) arguments;
  IDLESCOPE_PYTHON_API(IDLESCOPE_DECLARE)
#undef IDLESCOPE_DECLARE
  PyObject* none;             // borrowed for ever
  PyObject** stop_iteration;  // PyExc_StopIteration: filled by the interpreter later
  PyObject** system_error;
};

// The interpreter's functions. Valid only after load_python_api() returned true.
extern PythonApi python;

// Looks everything up; true if all of it was found. Needs no GIL. `library`: a dlopen handle,
// or null for the whole program.
bool load_python_api(void* library);

// A new reference to None.
inline PyObject* new_none() {
  python.Py_IncRef(python.none);
  return python.none;
}

}  // namespace idlescope::host
