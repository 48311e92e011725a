// One pass over one device: states, gaps, leaves, and the tables that come with them.
//
// In: a device timeline with its analysed spans. Out: the ledger of those spans, sums per
// kernel, copy path and call, and the longest gaps with their evidence. Cost: one sweep over
// the ops; a gap costs two binary searches and its pieces.
#pragma once

#include <memory>
#include <vector>

#include "analysis/diagnose/constants.h"
#include "analysis/diagnose/device_states.h"
#include "analysis/diagnose/diagnosis.h"
#include "analysis/diagnose/ledger.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

struct DevicePass {
  uint32_t device = 0;  // Model::devices
  Constants constants;
  std::vector<model::DeviceStep> spans;  // analysed: steady steps, or windows without steps
  bool window_only = false;
  std::unique_ptr<Ledger> ledger;
  HiddenTime hidden;
  std::vector<Ns> call_cost;   // device time charged, per call descriptor
  std::vector<Ns> waited_for;  // per op descriptor: copy and comm time that is the copy's own
  std::vector<Gap> gaps;       // the longest, longest first
  Ns longest_unexplained_queue_ns = 0;
  uint64_t unjoined = 0;
  uint64_t ops = 0;          // in spans
  Ns unjoined_ended_ns = 0;  // idle time that ended in ops without launch
};

DevicePass run_device_pass(const model::Model& model, uint32_t device);
// Of other spans than the steady ones.
DevicePass run_device_pass(const model::Model& model, uint32_t device,
                           std::vector<model::DeviceStep> spans);

// Causes of one stretch, for drawing: the same attribution again.
std::vector<GapPiece> causes_between(const model::Model& model, const DevicePass& pass, Ns begin_ns,
                                     Ns end_ns);

}  // namespace idlescope::diagnose
