// The C functions that the embedded snippet is given, by name.
//
// They run on the job's threads with the GIL held, take small integers and return at once.
// None raises: a bad argument counts as 0.
#pragma once

#include "profiler/host/python_api.h"

namespace idlescope::host {

// Puts the functions into the snippet's globals. False: out of memory (nothing is patched).
bool add_snippet_functions(PyObject* globals);

}  // namespace idlescope::host
