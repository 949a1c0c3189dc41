// `ucudnn db` where the library was built without SQLite (UCUDNN_USE_SQLITE=OFF).
#include "tool/commands.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

[[noreturn]] void refuse() {
  throw BadInput("db: this build has no SQLite, so there are no databases");
}

}  // namespace

int listEntries(const DatabaseOptions&) {
  refuse();
}
int exportEntries(const DatabaseOptions&) {
  refuse();
}
int importEntries(const DatabaseOptions&) {
  refuse();
}
int mergeEntries(const DatabaseOptions&) {
  refuse();
}
int pruneEntries(const DatabaseOptions&) {
  refuse();
}

}  // namespace ucudnn::tool
