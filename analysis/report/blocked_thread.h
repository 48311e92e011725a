// Why the main thread was not running, where HOST_BLOCKED says that it was not.
//
// In: the context of a report. Out: the call of the operating system in which it slept, or that
// it wanted a lock and no core. Used by the verdict's sentences and by the advice.
#pragma once

#include <string>

#include "analysis/report/context.h"

namespace idlescope::report {

// The call in which the thread slept most, of the longest waits; empty: none was recorded (then
// it wanted a core or the interpreter lock).
std::string sleeping_call(const Context& context);

// It was in no call that sleeps, and cores were free, so that a thread that only wanted a core
// would have had one; or the process used one CPU with the threads taking turns.
bool waits_for_lock(const Context& context);

}  // namespace idlescope::report
