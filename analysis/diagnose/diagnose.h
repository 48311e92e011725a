// The door of the diagnosis: from a recording to everything a report says.
//
// In: a model (or a recording, moved in). Out: Diagnosis. The device with the largest
// compute-absent time among those of the process with the most GPU work is the one the
// verdict is about; a recording without GPU work gets host-side numbers and CANNOT_TELL.
#pragma once

#include "analysis/diagnose/diagnosis.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

Diagnosis diagnose(const model::Model& model);

struct Analysis {
  model::Model model;  // holds the recording
  Diagnosis diagnosis;
};

Analysis analyze(read::Recording&& recording);

}  // namespace idlescope::diagnose
