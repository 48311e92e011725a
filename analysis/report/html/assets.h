// What is built into every HTML report: style sheet, our script, D3 of the distribution.
// Texts and the hashes of the scripts (for the page's content security policy) are set at
// configure time (CMakeLists.txt).
#pragma once

#include <string_view>

namespace idlescope::report::assets {

extern const std::string_view kStyle;
extern const std::string_view kScript;         // empty: built without D3, no drawings
extern const std::string_view kScriptSha256;   // hex
extern const std::string_view kLibrary;        // D3, minified, with its copyright line
extern const std::string_view kLibrarySha256;  // hex
extern const std::string_view kLibraryLicence;

}  // namespace idlescope::report::assets
