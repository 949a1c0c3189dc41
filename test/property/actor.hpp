// One thread of a client for one round: it asks about a convolution, follows the answer, and calls.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report.hpp"
#include "site.hpp"

namespace ucudnn::test {

/// A handle of the client.
struct ClientHandle {
  UcudnnHandle_t handle;
  int device = 0;
  bool adopted = false;  ///< made by plain cuDNN
  /// The limit that the latest query on this handle stated, by problem and operation.
  std::map<std::string, std::size_t> limits;
};

/// Device memory of exactly so many bytes, which the simulator watches on both sides. Null where
/// there is no more. Leaves captures of this thread valid.
class Granted {
 public:
  explicit Granted(std::size_t bytes);
  ~Granted();
  Granted(const Granted&) = delete;
  Granted& operator=(const Granted&) = delete;

  Workspace workspace() const { return {memory_, memory_ != nullptr ? bytes_ : 0}; }
  bool isWhole() const { return memory_ != nullptr || bytes_ == 0; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

/// A graph that was captured from calls at these sites.
struct ClientGraph {
  cudaGraphExec_t exec = nullptr;
  int device = 0;
  std::vector<Site*> sites;
  std::vector<std::unique_ptr<Granted>> memory;
};

/// An actor's role and permissions in its round.
struct Part {
  ClientHandle* asker = nullptr;   ///< the handle of its queries
  ClientHandle* runner = nullptr;  ///< the handle of its calls; often the same
  cudaStream_t stream = nullptr;
  bool ownsStream = false;  ///< destroys it right after the calls
  std::vector<Site*> sites;
  std::optional<cudaStreamCaptureMode> captures;
  bool othersCapture = false;
};

class Actor {
 public:
  Actor(const Scenario& scenario, const Part& part, Random random, Report& report)
      : scenario_(scenario), part_(part), random_(random), report_(report) {}

  /// Does what may come before the calls: the queries, and now and then the calls once in vain.
  void prepare();
  void act();

  /// Sites whose call succeeded, to be looked at once the devices have been waited for.
  const std::vector<Site*>& called() const { return called_; }
  /// The graph of its capture, if that has any call.
  ClientGraph takeGraph() { return std::move(graph_); }

 private:
  struct Choice {
    int algorithm = 0;
    std::size_t bytes = 0;
    bool followed = false;  ///< an answer of the library's, verbatim
    bool nullMemory = false;
  };

  void enter();
  Choice choose(Site& site);
  Choice followQuery(Site& site);
  Choice followPreference(Site& site);
  Choice followSize(Site& site, int algorithm, ClientHandle& handle);
  Choice chooseFreely(Site& site);
  void lookAtPlan(Site& site);
  std::optional<std::size_t> limitOf(Site& site, ClientHandle& handle) const;
  void checkEntry(const Site& site, const Performance& entry, std::size_t limit);
  void call(Site& site, const Choice& choice);
  bool mustRun(const Site& site, const Choice& choice, const Workspace& granted) const;
  void capture();
  bool isVoided(const Site& site, const std::string& by);
  void fail(const Site& site, const std::string& what);
  void trace(const Site& site, const std::string& step);

  const Scenario& scenario_;
  const Part part_;
  Random random_;
  Report& report_;
  std::map<Site*, Choice> prepared_;
  std::vector<Site*> called_;
  std::vector<std::unique_ptr<Granted>> memory_;
  ClientGraph graph_;
};

}  // namespace ucudnn::test
