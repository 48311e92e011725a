#include "profiler/host/python_bridge.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "profiler/emit/fork_page.h"
#include "profiler/emit/process_identity.h"
#include "profiler/emit/trace_file.h"
#include "profiler/host/python_api.h"
#include "profiler/host/python_functions.h"
#include "profiler/host/snippet.h"

namespace idlescope::host {
namespace {

// Set once the snippet ran (or failed): inherited by forked children, as the patches are.
std::atomic<bool> installed{false};
std::atomic<bool> api_loaded{false};
thread_local bool installing;

void note_python_version() {
  const char* version = python.Py_GetVersion();  // "3.11.2 (main, …) [GCC …]"
  char* out = emit::identity().python_version;
  const size_t size = strcspn(version, " ");
  const size_t room = sizeof emit::identity().python_version - 1;
  memcpy(out, version, size < room ? size : room);
}

bool run_part(const SnippetPart& part, PyObject* globals) {
  PyObject* code = python.Py_CompileString(part.text, part.name, kPyFileInput);
  if (code == nullptr) return false;
  PyObject* result = python.PyEval_EvalCode(code, globals, globals);
  python.Py_DecRef(code);
  if (result == nullptr) return false;
  python.Py_DecRef(result);
  return true;
}

// GIL held, no exception set. Leaves none set.
void install() {
  if (installed.exchange(true)) return;
  installing = true;
  note_python_version();
  PyObject* globals = python.PyDict_New();
  bool done =
      globals != nullptr &&
      python.PyDict_SetItemString(globals, "__builtins__", python.PyEval_GetBuiltins()) == 0 &&
      add_snippet_functions(globals);
  for (size_t i = 0; done && i < kSnippetParts; ++i) done = run_part(snippet_part(i), globals);
  if (!done) python.PyErr_Clear();
  // `globals` lives on through the functions that were installed.
  if (globals != nullptr) python.Py_DecRef(globals);
  installing = false;
}

bool is_torch(const char* module, PySsize size) {
  return size >= 5 && memcmp(module, "torch", 5) == 0 && (size == 5 || module[5] == '.');
}

// Runs for every audit event of the job: two byte compares for nearly all of them. The first
// 40 to 800 events come before the interpreter is initialised; none of them is an import.
int audit(const char* event, PyObject* arguments, void*) {
  if (event[0] != 'i' || event[1] != 'm') return 0;
  if (installed.load(std::memory_order_relaxed) || installing) return 0;
  if (strcmp(event, "import") != 0 || python.Py_IsInitialized() == 0) return 0;
  PyObject* module = python.PyTuple_GetItem(arguments, 0);
  PySsize size = 0;
  const char* text = module == nullptr ? nullptr : python.PyUnicode_AsUTF8AndSize(module, &size);
  if (text == nullptr) {
    python.PyErr_Clear();
  } else if (is_torch(text, size)) {
    install();
  }
  return 0;
}

int install_pending(void*) {
  install();
  return 0;
}

// A libpython that was loaded by dlopen, perhaps with RTLD_LOCAL: found by its file name.
int find_libpython(dl_phdr_info* info, size_t, void* out) {
  const char* path = info->dlpi_name;
  const char* slash = path == nullptr ? nullptr : strrchr(path, '/');
  if (slash == nullptr || strncmp(slash + 1, "libpython3", 10) != 0) return 0;
  *static_cast<const char**>(out) = path;
  return 1;
}

bool load_api_late() {
  if (api_loaded.load(std::memory_order_acquire)) return true;
  if (load_python_api(nullptr)) {
    api_loaded.store(true, std::memory_order_release);
    return true;
  }
  if (dlopen == nullptr) return false;
  const char* path = nullptr;
  dl_iterate_phdr(find_libpython, static_cast<void*>(&path));
  if (path == nullptr) return false;
  void* library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr || !load_python_api(library)) return false;
  api_loaded.store(true, std::memory_order_release);  // the handle is kept: it stays loaded
  return true;
}

}  // namespace

void add_audit_hook() {
  if (!load_python_api(nullptr)) return;
  api_loaded.store(true, std::memory_order_release);
  if (python.Py_IsInitialized() != 0) return;  // loaded late: the GIL state is unknown here
  python.PySys_AddAuditHook(audit, nullptr);
}

bool bridge_installed() { return installed.load(std::memory_order_relaxed); }

void queue_late_installation() {
  if (installed.load(std::memory_order_relaxed) || !emit::recording_possible()) return;
  if (!load_api_late() || python.Py_IsInitialized() == 0) return;
  python.Py_AddPendingCall(install_pending, nullptr);
}

}  // namespace idlescope::host
