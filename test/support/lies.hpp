// Databases in which every number is a lie.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace ucudnn::test {

/// Random numbers that a liar would choose: most of them believable.
class Liar {
 public:
  explicit Liar(unsigned seed) : random_(seed) {}

  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  bool rarely() { return below(20) == 0; }

  double timeMs() {
    constexpr std::array<double, 8> kAbsurd{0, 1e-30, 1e-4, 1e9, 1.7e308, 4.9e-324, 1e10, 0.001};
    if (rarely()) return kAbsurd[static_cast<std::size_t>(below(8))];
    return std::pow(10, std::uniform_real_distribution<double>(-2.5, 2)(random_));
  }
  std::int64_t bytes() {
    constexpr std::array<std::int64_t, 6> kEdges{0, 1, 512, INT64_MAX, INT64_MAX - 1, 1 << 20};
    if (below(2) == 0) return kEdges[static_cast<std::size_t>(below(6))];
    return std::int64_t{1} << below(40);
  }

 private:
  std::mt19937 random_;
};

/// Gives every kernel another time, workspace and determinism, and every size another bound. Throws
/// std::runtime_error.
inline void lieInEveryNumber(const std::string& path, unsigned seed) {
  sqlite3* connection = nullptr;
  const auto check = [&](int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return code;
    const std::string why = sqlite3_errmsg(connection);
    sqlite3_close(connection);
    throw std::runtime_error(path + ": " + why);
  };
  const auto prepare = [&](const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(connection, sql, -1, &statement, nullptr));
    return statement;
  };
  check(sqlite3_open(path.c_str(), &connection));
  check(sqlite3_exec(connection, "BEGIN", nullptr, nullptr, nullptr));
  Liar liar(seed);
  std::vector<std::pair<std::int64_t, std::string>> kernels;
  sqlite3_stmt* const rows = prepare("SELECT size_id, kernel FROM measurement ORDER BY 1, 2");
  while (check(sqlite3_step(rows)) == SQLITE_ROW)
    kernels.emplace_back(sqlite3_column_int64(rows, 0),
                         reinterpret_cast<const char*>(sqlite3_column_text(rows, 1)));
  sqlite3_finalize(rows);
  sqlite3_stmt* const change = prepare(
      "UPDATE measurement SET time_ms = ?, workspace_bytes = ?, deterministic = ?, device_ms = ?, "
      "measured_at = ? WHERE size_id = ? AND kernel = ?");
  for (const auto& [size, kernel] : kernels) {
    const double timeMs = liar.timeMs();
    sqlite3_bind_double(change, 1, timeMs);
    sqlite3_bind_int64(change, 2, liar.bytes());
    sqlite3_bind_int(change, 3, liar.below(2));
    sqlite3_bind_double(change, 4, liar.rarely() ? liar.timeMs() : timeMs);
    sqlite3_bind_int64(change, 5, liar.bytes());
    sqlite3_bind_int64(change, 6, size);
    sqlite3_bind_text(change, 7, kernel.c_str(), -1, SQLITE_TRANSIENT);
    check(sqlite3_step(change));
    check(sqlite3_reset(change));
  }
  sqlite3_finalize(change);
  const std::string bound = "UPDATE size SET covered_bytes = abs(random() % " +
                            std::to_string(1 + liar.bytes() / 2) + "), measured_at = 7";
  check(sqlite3_exec(connection, bound.c_str(), nullptr, nullptr, nullptr));
  check(sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr));
  sqlite3_close(connection);
}

}  // namespace ucudnn::test
