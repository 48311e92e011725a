#include "tools/job_identity.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace idlescope::tools {
namespace {

std::optional<int> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

JobIdentity identify_job(const Environment& environment) {
  JobIdentity identity;
  // RANK is torchrun's: the innermost launcher.
  struct Names {
    const char* rank;
    const char* size;
  };
  for (const Names& names :
       {Names{"RANK", "WORLD_SIZE"}, Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        Names{"PMI_RANK", "PMI_SIZE"}, Names{"SLURM_PROCID", "SLURM_NTASKS"}}) {
    const std::optional<int> rank = number(environment, names.rank);
    const std::optional<int> size = number(environment, names.size);
    if (!rank || !size) continue;
    // Slurm sets its variables for one task and for interactive shells too.
    if (std::string_view(names.rank) == "SLURM_PROCID" && *size < 2) continue;
    identity.rank = rank;
    identity.world_size = *size;
    break;
  }
  if (const char* slurm = environment("SLURM_JOB_ID")) {
    identity.job_id = slurm;
    if (const char* step = environment("SLURM_STEP_ID")) {
      identity.job_id += '.';
      identity.job_id += step;
    }
  } else if (const char* ompi = environment("PMIX_NAMESPACE")) {
    identity.job_id = ompi;
  }
  return identity;
}

}  // namespace idlescope::tools
