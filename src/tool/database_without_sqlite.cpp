// `ucudnn db` where the library was built without SQLite (UCUDNN_USE_SQLITE=OFF).
#include "tool/database.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {

int maintainDatabase(const DatabaseOptions&, const std::function<MachineKey(int device)>&) {
  throw BadInput("db: this build has no SQLite, so there are no databases");
}

}  // namespace ucudnn::tool
