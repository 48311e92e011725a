// What a blocking call really cost (B3): the gap with the call minus the gap without it.
//
// In: the host pieces of a gap, the first of which is a call that waited for the device and
// straddles the begin of the gap; the gap. Out: pieces for the gap: the part that goes away
// with the call is the call's, what stays keeps its own leaf.
//
//   sync      ├───────────┤ returns at drain + r            with the call: gap g0…g1'
//   device  ██████████████|░░░░░░░░░░░░░░██████
//   host                  ┊ ├── A ──┤launch
//   replay    ├── A ──┤launch                               without: launched before the
//   device  ██████████████|███████                          drain, no gap: all is SYNC's
//
// Pieces after the call are run again from the call's begin: data pieces end when their
// batch is ready, later waits when the device has drained, all others take as long as they
// took. A call made when the device is almost drained so costs almost nothing, one made
// over a long backlog costs the whole refill.
//
// A wait of the program that is several calls in a row (a copy that waits and the stream
// sync after it) goes away as a whole. What the host gained by a wait beyond its own gap is
// kept in run_ahead.h, and the gaps after it are replayed that much earlier.
//
// Invariant: the pieces cover [g0, g1) exactly.
#pragma once

#include <vector>

#include "analysis/diagnose/constants.h"
#include "analysis/diagnose/host_chain.h"
#include "analysis/diagnose/loader_stages.h"
#include "analysis/diagnose/piece.h"
#include "analysis/diagnose/run_ahead.h"

namespace idlescope::diagnose {

// Appends what one host piece means for device time in [begin_ns, end_ns).
void emit_host_piece(const HostPiece& piece, Ns begin_ns, Ns end_ns, const LoaderStages& stages,
                     Pieces& out);

size_t end_of_episode(const std::vector<HostPiece>& host);

// `host` covers [g0, g1) in order. `straddles`: host.front() is a call that waited for the
// device across g0 and goes away; else only the lead of earlier waits moves the host.
void replay_without(const std::vector<HostPiece>& host, bool straddles, Ns g0, Ns g1,
                    const Constants& constants, const LoaderStages& stages, RunAhead& ahead,
                    Pieces& out);

}  // namespace idlescope::diagnose
