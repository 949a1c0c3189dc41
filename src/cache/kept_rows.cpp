#include "cache/kept_rows.hpp"

#include <algorithm>
#include <map>

namespace ucudnn {
namespace {

std::size_t bytesOfRows(SqliteConnection& connection) {
  const std::int64_t pages =
      connection.integer("PRAGMA page_count") - connection.integer("PRAGMA freelist_count");
  return static_cast<std::size_t>(pages * connection.integer("PRAGMA page_size"));
}

/// Problems by the time of their last use. Uses of texts that begin with theirs and a space count,
/// too.
std::multimap<std::int64_t, std::string> problemsByUse(SqliteConnection& connection) {
  std::multimap<std::int64_t, std::string> problems;
  std::string problem;
  std::int64_t used = 0;
  SqliteStatement rows(connection,
                       "SELECT text, max(measured_at) FROM size JOIN problem "
                       "ON problem.id = problem_id GROUP BY problem_id ORDER BY text");
  while (rows.step()) {
    const std::string text = rows.text(0);
    const bool isPart = !problem.empty() && text.compare(0, problem.size() + 1, problem + " ") == 0;
    if (!isPart && !problem.empty()) problems.emplace(used, problem);
    used = isPart ? std::max(used, rows.integer(1)) : rows.integer(1);
    if (!isPart) problem = text;
  }
  if (!problem.empty()) problems.emplace(used, problem);
  return problems;
}

}  // namespace

void boundRows(DatabaseFile& file, std::size_t mostBytes) {
  SqliteConnection& connection = file.connection;
  if (bytesOfRows(connection) <= mostBytes) return;
  SqliteTransaction transaction(connection, SqliteTransaction::Kind::kWrite);
  checkSchema(file);
  constexpr std::size_t kParts = 16;
  // All texts about a problem begin with its own.
  SqliteStatement remove(connection, "DELETE FROM problem WHERE text >= ? AND text < ?");
  for (const auto& [used, problem] : problemsByUse(connection)) {
    if (bytesOfRows(connection) <= mostBytes - mostBytes / kParts) break;
    const std::string end = behind(problem);
    remove.bind(problem, end).run();
  }
  transaction.commit();
}

void dateRows(DatabaseFile& file, const std::vector<std::string>& problems, std::int64_t now) {
  SqliteTransaction transaction(file.connection, SqliteTransaction::Kind::kWrite);
  checkSchema(file);
  SqliteStatement date(file.connection,
                       "UPDATE size SET measured_at = ? WHERE measured_at < ? AND problem_id IN "
                       "(SELECT id FROM problem WHERE text >= ? AND text < ?)");
  for (const std::string& problem : problems) {
    const std::string end = behind(problem);
    date.bind(now, now - kUseSeconds, problem, end).run();
  }
  transaction.commit();
}

void resetDatabaseFile(const std::string& path, const SqliteLimits& limits) {
  SqliteConnection connection(path, SqliteConnection::Access::kReadWrite, limits);
  const auto reset = [&](int isOn) {
    sqlite3_db_config(
        connection.get(), SQLITE_DBCONFIG_RESET_DATABASE, isOn, static_cast<int*>(nullptr));
  };
  reset(1);
  connection.execute("VACUUM");
  reset(0);
}

}  // namespace ucudnn
