// A build with UCUDNN_DIVIDE=OFF: the settings refuse `divide`, so nobody asks for a division.
#include <stdexcept>

#include "division/workspace_division.hpp"

namespace ucudnn {
namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("this build divides no workspace: rebuild with -DUCUDNN_DIVIDE=ON");
}

}  // namespace

bool workspaceDivisionAvailable() noexcept {
  return false;
}

std::vector<std::size_t> limitsToMeasure(std::size_t, std::size_t) {
  refuse();
}

std::optional<Division> divideWorkspace(const std::vector<DivisionItem>&, const DivisionSettings&) {
  refuse();
}

bool writeDivisionProblem(const std::vector<DivisionItem>&,
                          const DivisionSettings&,
                          const std::string&) {
  refuse();
}

}  // namespace ucudnn
