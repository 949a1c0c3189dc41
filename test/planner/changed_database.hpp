// A benchmark database that somebody has changed.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace ucudnn::test {

/// Changes what is stored, as a colleague who means no good would.
inline void changeDatabase(const std::string& path, const std::string& statement) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(connection);
  EXPECT_GT(sqlite3_changes(connection), 0) << "nothing was changed";
  EXPECT_EQ(sqlite3_close(connection), SQLITE_OK);
}

}  // namespace ucudnn::test
