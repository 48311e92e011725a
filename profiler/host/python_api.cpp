#include "profiler/host/python_api.h"

#include <dlfcn.h>

#include <cstring>

namespace idlescope::host {

PythonApi python;

bool load_python_api(void* library) {
  if (dlsym == nullptr) return false;  // old glibc, program without libdl: no Python here
  void* where = library == nullptr ? RTLD_DEFAULT : library;
  bool found = true;
  // Through memcpy: ISO C++ has no cast from an object pointer to a function pointer.
#define IDLESCOPE_LOOK_UP(result, name, arguments)  \
  {                                                 \
    void* address = dlsym(where, #name);            \
    memcpy(&python.name, &address, sizeof address); \
    found = found && address != nullptr;            \
  }
  IDLESCOPE_PYTHON_API(IDLESCOPE_LOOK_UP)
#undef IDLESCOPE_LOOK_UP
  python.none = static_cast<PyObject*>(dlsym(where, "_Py_NoneStruct"));
  python.stop_iteration = static_cast<PyObject**>(dlsym(where, "PyExc_StopIteration"));
  python.system_error = static_cast<PyObject**>(dlsym(where, "PyExc_SystemError"));
  return found && python.none != nullptr && python.stop_iteration != nullptr &&
         python.system_error != nullptr;
}

}  // namespace idlescope::host
