// Gets one embedded Python snippet into the job's interpreter.
//
// In: an interpreter that is about to start (constructor), or one that runs already (cuInit,
// API). Out: the DataLoader, optimizer and other classes patched; host events. Works without
// Python.h and without linking libpython: every function is looked up, objects are opaque.
// An audit hook waits for `import torch`; until then it costs two byte compares per audit
// event (recorder.md II.1.1; PEP 578).
#pragma once

namespace idlescope::host {

// From the constructor: adds the audit hook if this program holds a Python interpreter that
// has not been initialised yet. Does nothing else in other programs.
void add_audit_hook();

// From cuInit or the API, any thread, GIL unknown: if a live interpreter was not patched yet
// (program that dlopens libpython, library loaded late), queues the installation for the main
// thread (Py_AddPendingCall) and returns.
void queue_late_installation();

// PyTorch's classes are patched in this process: training steps will be seen. Any thread.
bool bridge_installed();

}  // namespace idlescope::host
