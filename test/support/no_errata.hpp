// An errata file that names none. cuDNN 9.10.2 to 9.15 have wrong engines with tensor cores in 3-D,
// which are not used. The simulator's engines are right whatever its version.
#pragma once

#include <fstream>
#include <string>

namespace ucudnn::test {

/// For CUDNN_ERRATA_JSON_FILE.
inline std::string writeNoErrata(const std::string& path) {
  std::ofstream(path) << R"({"version": 1, "rules": []})";
  return path;
}

}  // namespace ucudnn::test
