#include "profiler/host/code_table.h"

#include <stdio.h>
#include <string.h>

#include "profiler/emit/trace_file.h"

namespace idlescope::host {
namespace {

constexpr size_t kMaxTextBytes = 1024;

// A string attribute of `object`; "" if it has none.
void text_attribute(PyObject* object, const char* name, char* out, size_t capacity) {
  out[0] = '\0';
  PyObject* value = python.PyObject_GetAttrString(object, name);
  PySsize size = 0;
  const char* text = value == nullptr ? nullptr : python.PyUnicode_AsUTF8AndSize(value, &size);
  if (text != nullptr) {
    strncpy(out, text, capacity - 1);
    out[capacity - 1] = '\0';
  } else {
    python.PyErr_Clear();
  }
  if (value != nullptr) python.Py_DecRef(value);
}

long long integer_attribute(PyObject* object, const char* name) {
  PyObject* value = python.PyObject_GetAttrString(object, name);
  if (value == nullptr) {
    python.PyErr_Clear();
    return 0;
  }
  const long long number = python.PyLong_AsLongLong(value);
  python.Py_DecRef(value);
  return number;
}

// The same rule as _is_library in snippet/patching.py.
bool is_library(const char* file) {
  return file[0] == '<' || strstr(file, "/site-packages/") != nullptr ||
         strstr(file, "/dist-packages/") != nullptr || strstr(file, "/lib/python3") != nullptr ||
         strstr(file, "/torchinductor_") != nullptr;
}

void function_name(PyObject* code, char* out, size_t capacity) {
  text_attribute(code, "co_qualname", out, capacity);  // CPython 3.11 and later
  if (out[0] == '\0') text_attribute(code, "co_name", out, capacity);
}

void describe(PyObject* code, CodeEntry* out) {
  char file[kMaxTextBytes];
  char function[kMaxTextBytes];
  text_attribute(code, "co_filename", file, sizeof file);
  function_name(code, function, sizeof function);
  out->is_user = !is_library(file);
  // torchvision (v1, v2), torchaudio's Sequential, albumentations, MONAI.
  out->is_compose =
      strstr(function, "Compose.") != nullptr || strstr(function, "Sequential.") != nullptr ||
      (strcmp(function, "__call__") == 0 && strstr(file, "/transforms/transforms.py"));
  out->is_plumbing = strstr(file, "/torch/nn/modules/module.py") != nullptr ||
                     strstr(file, "/torch/utils/data/_utils/fetch.py") != nullptr;
}

}  // namespace

CodeEntry* CodeTable::find_or_add(PyObject* code) {
  size_t at = (reinterpret_cast<uintptr_t>(code) >> 5) & (kCapacity - 1);
  while (entries_[at].code != nullptr) {
    if (entries_[at].code == code) return &entries_[at];
    at = (at + 1) & (kCapacity - 1);
  }
  if (count_ >= kCapacity - kCapacity / 4) return nullptr;
  ++count_;
  CodeEntry& entry = entries_[at];
  python.Py_IncRef(code);
  entry.code = code;
  entry.name_id = 0;
  entry.generation = 0;
  describe(code, &entry);
  return &entry;
}

uint32_t CodeTable::name_id(CodeEntry* entry) {
  const uint32_t generation = emit::file_generation();
  if (entry->name_id != 0 && entry->generation == generation) return entry->name_id;
  char file[kMaxTextBytes];
  char function[kMaxTextBytes];
  char name[2 * kMaxTextBytes + 32];
  text_attribute(entry->code, "co_filename", file, sizeof file);
  function_name(entry->code, function, sizeof function);
  const int size = snprintf(name, sizeof name, "%s:%lld %s", file,
                            integer_attribute(entry->code, "co_firstlineno"), function);
  entry->name_id = size > 0 ? emit::name_id(name, static_cast<size_t>(size)) : 0;
  entry->generation = generation;
  return entry->name_id;
}

}  // namespace idlescope::host
