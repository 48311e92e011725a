#include "profiler/host/python_bridge.h"

namespace idlescope::host {

void add_audit_hook() {}
void queue_late_installation() {}

}  // namespace idlescope::host
