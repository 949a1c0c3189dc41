// One client process of the property test.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "actor.hpp"

namespace ucudnn::test {

class Client {
 public:
  Client(const Scenario& scenario, Report& report);

  /// Everything: rounds of calls, then the end of all that the client has made. Looks at what is
  /// left after that.
  void run();

 private:
  struct Baseline {
    std::vector<std::int64_t> handles;
    std::vector<std::size_t> bytes;
  };

  Baseline look() const;
  void makeSites();
  void addHandle(int device);
  void destroyHandle(std::size_t place);
  void replaceHandle();
  void replaceStream();
  void changeMemory();
  void changeSettings();
  cudaStream_t pickStream(int device, bool capturing, bool othersCapture, bool* owned);
  bool isTaken(const Part& part, const std::vector<Part>& parts) const;
  std::vector<Part> chooseParts();
  void waitForDevices();
  template <typename Do>
  void together(std::deque<Actor>& actors, Do what);
  void act(const std::vector<Part>& parts);
  void launchGraphs();
  void dropGraphs(int device);
  void lookAt(Site& site, const char* after);
  void end();
  void checkLeaks(const Baseline& before);

  const Scenario& scenario_;
  Report& report_;
  Random random_;
  std::vector<std::unique_ptr<Site>> sites_;
  std::deque<ClientHandle> handles_;
  std::vector<std::vector<cudaStream_t>> streams_;  ///< by device
  std::vector<ClientGraph> graphs_;
  bool plainlyDestroyed_ = false;
  bool memoryIsShort_ = false;
};

/// Runs one seed in this process.
void runClient(const Scenario& scenario, Report& report);

}  // namespace ucudnn::test
