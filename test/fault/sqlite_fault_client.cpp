// The program under fault injection: stores some problems in a database and loads them again.
//   sqlite_fault_client DATABASE LOG
// Exit status: 0, or 3 when a load returned something other than all or nothing of what was stored.
#include <cstdio>

#include "../support/own_measurements.hpp"
#include "cache/database.hpp"
#include "sqlite_workload.hpp"
#include "support/log.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ucudnn::Log::instance().configure(ucudnn::LogLevel::kWarn, argv[2]);
  ucudnn::Database database(argv[1]);
  const ucudnn::MachineKey machine = ucudnn::test::faultMachine();
  for (int i = 0; i < ucudnn::test::kProblems; ++i) {
    database.store(machine, ucudnn::test::faultProblem(i), ucudnn::test::faultMeasurements(i));
  }
  for (int i = 0; i < ucudnn::test::kProblems; ++i) {
    const auto found = ucudnn::test::loadOwn(database, machine, ucudnn::test::faultProblem(i));
    if (!found.empty() && !ucudnn::test::isWhole(found, i)) return 3;
  }
  return 0;
}
