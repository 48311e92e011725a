#include "analysis/simulate/mechanism_catalogue.h"

namespace idlescope::simulate {

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all = [] {
    std::vector<Mechanism> catalogue;
    add_data_mechanisms(&catalogue);
    add_device_mechanisms(&catalogue);
    add_host_mechanisms(&catalogue);
    return catalogue;
  }();
  return all;
}

const Mechanism* find_mechanism(std::string_view cause, std::string_view name) {
  for (const Mechanism& m : mechanisms()) {
    if (m.cause == cause && (name.empty() || m.name == name)) return &m;
  }
  return nullptr;
}

}  // namespace idlescope::simulate
