#include "tool/rank.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "tool/failure.hpp"
#include "tool/rank_process.hpp"

namespace ucudnn::tool {

Ranks::Ranks(const std::vector<Layer>& layers,
             const ConvolutionOptions& options,
             const std::vector<RankOptions>& ranks)
    : memory_(static_cast<int>(ranks.size()), gradientBytesOf(layers, options.numerics)) {
  std::cout.flush();  // or each child writes what is in it, too
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw DeviceError(fmt::format("no socket for a device's process: {}", std::strerror(errno)));
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      // The child ends with its parent, even if that is killed.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (const Process& other : processes_) close(other.socket);
      close(ends[0]);
      serveRank(ends[1], memory_, static_cast<int>(i), ranks[i], layers, options);
      std::exit(0);
    }
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      throw DeviceError(fmt::format("no process for a device: {}", std::strerror(errno)));
    }
    processes_.push_back({child, ends[0], ranks[i].device});
  }
}

/// Waits for processes that answer: they end by themselves, and keep in the database what they have
/// measured. Others are killed, because they may wait for one that has failed.
Ranks::~Ranks() {
  for (const Process& process : processes_) close(process.socket);
  constexpr int kPatienceMs = 5000, kPollMs = 10;
  for (const Process& process : processes_) {
    int waitedMs = 0;
    while (waitpid(process.id, nullptr, WNOHANG) == 0) {
      if (waitedMs >= kPatienceMs || hasFailed_) {
        kill(process.id, SIGKILL);
        waitpid(process.id, nullptr, 0);
        break;
      }
      usleep(kPollMs * 1000);
      waitedMs += kPollMs;
    }
  }
}

RankAnswer Ranks::receive(const Process& process) const {
  RankReply reply;
  if (recv(process.socket, &reply, sizeof reply, 0) != sizeof reply)
    throw DeviceError(fmt::format("device {}: its process has ended", process.device));
  const std::string why = fmt::format("device {}: {}", process.device, reply.answer.text);
  if (reply.status == RankReply::Status::kBadInput) throw BadInput(why);
  if (reply.status == RankReply::Status::kDeviceError) throw DeviceError(why);
  return reply.answer;
}

std::vector<std::optional<RankAnswer>> Ranks::ask(
    const std::vector<std::optional<RankQuestion>>& questions) {
  std::vector<std::optional<RankAnswer>> answers(size());
  std::vector<pollfd> waiting(size());
  std::size_t open = 0;
  hasFailed_ = true;  // until all have answered
  for (std::size_t i = 0; i < size(); ++i) {
    waiting[i] = {questions[i] ? processes_[i].socket : -1, POLLIN, 0};
    if (!questions[i]) continue;
    ++open;
    // A process that has ended is noticed because its answer doesn't come.
    static_cast<void>(
        send(processes_[i].socket, &*questions[i], sizeof *questions[i], MSG_NOSIGNAL));
  }
  while (open > 0) {
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw DeviceError(fmt::format("poll: {}", std::strerror(errno)));
    for (std::size_t i = 0; i < size(); ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      answers[i] = receive(processes_[i]);
      waiting[i].fd = -1;
      --open;
    }
  }
  hasFailed_ = false;
  return answers;
}

}  // namespace ucudnn::tool
