// `idlescope doctor`: what works on this machine, what does not, what to do.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <memory>

#include "analysis/report/layout.h"
#include "proto/messages.h"
#include "tools/doctor_checks.h"
#include "tools/exit_codes.h"
#include "tools/recorder_library.h"
#include "tools/say.h"
#include "tools/standard_output.h"
#include "tools/subcommand.h"
#include "tools/trial_recording.h"

namespace idlescope::tools {
namespace {

constexpr const char* kIndent = "           ";

class Report {
 public:
  void add(const Finding& finding) {
    const messages::Message& label = finding.health == Health::kWorks     ? messages::kDoctorWorks
                                     : finding.health == Health::kLimited ? messages::kDoctorLimited
                                                                          : messages::kDoctorFails;
    print(wrap(words(finding.what, finding.values), report::pad_right("  " + words(label), 11),
               kIndent));
    if (finding.todo) print(wrap(words(*finding.todo, finding.values), kIndent, kIndent));
    failed_ = failed_ || finding.health == Health::kFails;
  }
  void add(const std::optional<Finding>& finding) {
    if (finding) add(*finding);
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

void add_trial(const TrialRecording& trial, const std::string& python, Report& report) {
  const messages::Values values = {
      {"python", trial.python},
      {"program", python},
      {"torch", trial.torch},
      {"cuda", trial.cuda.empty() ? words(messages::kSureNone) : trial.cuda},
      {"batches", std::to_string(trial.batches)},
      {"fetches", std::to_string(trial.fetches)},
      {"expected", std::to_string(kTrialBatches)},
      {"kernels", std::to_string(trial.kernels)},
      {"trouble", trial.trouble.empty() ? "nothing said" : trial.trouble}};
  if (!trial.python_runs) {
    report.add(Finding{Health::kLimited, messages::kDoctorNoPython, values,
                       messages::kDoctorNoPythonTodo});
    return;
  }
  if (trial.torch.empty()) {
    report.add(
        Finding{Health::kLimited, messages::kDoctorNoTorch, values, messages::kDoctorNoTorchTodo});
    return;
  }
  report.add(Finding{Health::kWorks, messages::kDoctorTorch, values, std::nullopt});
  const bool host = trial.batches == kTrialBatches && trial.fetches == kTrialBatches;
  report.add(Finding{host ? Health::kWorks : Health::kFails, messages::kDoctorTrialHost, values,
                     std::nullopt});
  if (!trial.cuda_available) return;
  const bool device = trial.kernels > 0;
  report.add(Finding{device ? Health::kWorks : Health::kLimited,
                     device ? messages::kDoctorTrialDevice : messages::kDoctorTrialNoDevice, values,
                     std::nullopt});
}

int run_doctor(const std::string& python) {
  end_quietly_on_closed_pipe();
  Report report;
  report.add(check_wsl(""));
  report.add(check_driver(""));
  report.add(check_gpu_permission("", geteuid() == 0));
  report.add(check_cores(""));
  report.add(check_counters(""));
  report.add(check_file_system("."));
  report.add(check_file_size_limit());
  report.add(check_shared_memory(""));
  report.add(check_foreign_preload(std::getenv("LD_PRELOAD")));
  const tl::expected<std::string, LibraryFailure> library = find_recorder_library();
  if (!library) {
    const bool missing = library.error().reason.empty();
    report.add(Finding{Health::kFails,
                       missing ? messages::kLibraryMissing : messages::kLibraryUnusable,
                       {{"paths", library.error().looked_at}, {"reason", library.error().reason}},
                       std::nullopt});
  } else {
    report.add(
        Finding{Health::kWorks, messages::kDoctorLibrary, {{"path", *library}}, std::nullopt});
    add_trial(make_trial_recording(*library, python), python, report);
  }
  if (!finish_printing()) return kBadInput;
  return report.failed() ? kBadInput : kOk;
}

}  // namespace

void add_doctor(CLI::App& app, Selected& selected) {
  auto python = std::make_shared<std::string>("python3");
  CLI::App* doctor =
      app.add_subcommand("doctor",
                         "Say what works on this machine, what does not, and what to do.\n"
                         "\n"
                         "  idlescope doctor\n"
                         "  idlescope doctor --python /opt/conda/bin/python");
  doctor->add_option("--python", *python, "The Python of your jobs (python3)");
  auto language = std::make_shared<std::string>();  // read before (main)
  doctor->add_option("--lang", *language, "Language (en, zh)");
  doctor->callback(
      [python, language, &selected] { selected.run = [python] { return run_doctor(*python); }; });
}

}  // namespace idlescope::tools
