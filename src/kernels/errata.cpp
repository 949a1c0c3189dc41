#include "kernels/errata.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "cuda/cudnn.hpp"
#include "problem/activation.hpp"
#include "support/fork.hpp"

namespace ucudnn {
namespace {

// Version numbers are cudnnGetVersion's.
Errata makeBuiltIn() {
  Erratum bfloat16In3d;
  bfloat16In3d.id = "bfloat16_3d";
  bfloat16In3d.operation = "ConvFwd";
  bfloat16In3d.fromVersion = 90800;
  bfloat16In3d.endVersion = 91100;
  bfloat16In3d.dimensions = 5;
  bfloat16In3d.inputType = CUDNN_DATA_BFLOAT16;
  bfloat16In3d.source = "github.com/pytorch/pytorch/issues/163539";

  Erratum tf32In3d;
  tf32In3d.id = "tf32_3d";
  tf32In3d.fromVersion = 91002;
  tf32In3d.endVersion = 91600;
  tf32In3d.dimensions = 5;
  tf32In3d.inputType = CUDNN_DATA_FLOAT;
  tf32In3d.ofTensorCores = true;
  tf32In3d.source = "github.com/pytorch/pytorch/pull/167024";

  Erratum engine5;
  engine5.id = "ConvFwd_eng5";
  engine5.operation = "ConvFwd";
  engine5.engine = 5;
  engine5.fromVersion = 92301;
  engine5.endVersion = 92400;
  engine5.computeCapability = 86;
  engine5.source = "github.com/pytorch/pytorch/pull/188318, 189207, 189483";

  // Right in a process of its own, wrong behind other problems: the check at a kernel's first use
  // may not see it.
  Erratum engine0In3d;
  engine0In3d.id = "ConvFwd_eng0_3d";
  engine0In3d.operation = "ConvFwd";
  engine0In3d.engine = 0;
  engine0In3d.fromVersion = 91900;
  engine0In3d.endVersion = 92000;
  engine0In3d.computeCapability = 90;
  engine0In3d.dimensions = 5;
  engine0In3d.inputType = CUDNN_DATA_BFLOAT16;
  engine0In3d.leastBytes = std::size_t{1} << 31;
  engine0In3d.source = "misc/results/check_large_h200.json";

  return {bfloat16In3d, tf32In3d, engine5, engine0In3d};
}

/// cudnn-frontend's tag of our graph. Its versions write pointwise operations "ADD" and "Add",
/// "RELU_FWD" and "ReluFwd".
std::string tagOf(const Problem& problem) {
  switch (problem.operation) {
    case Operation::kBackwardData:
      return "ConvBwdData";
    case Operation::kBackwardFilter:
      return "ConvBwdFilter";
    case Operation::kBiasActivationForward:
      return std::string(problem.addsZ != 0 ? "ConvFwd_ADD_ADD" : "ConvFwd_ADD") +
             (problem.activation == kElu ? "_ELU_FWD"
              : activates(problem)       ? "_RELU_FWD"
                                         : "");
    default:
      return "ConvFwd";
  }
}

/// The tag in small letters without underscores, in which the versions agree.
std::string plain(std::string tag) {
  tag.erase(std::remove(tag.begin(), tag.end(), '_'), tag.end());
  for (char& letter : tag)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return tag;
}

/// Whether a tensor of images has these sizes.
bool hasShape(const Erratum::Shape& shape, const Problem& problem, const Problem::Sizes& sizes) {
  if (problem.dimensions != 4) return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != -1 && shape[d] != sizes[d]) return false;
  return true;
}

/// Whether the engine has all knobs of the erratum. They are looked for as cudnn-frontend does,
/// anywhere in the text: "k2=4" also means "k2=40".
bool hasKnobs(const Erratum& erratum, const EngineConfiguration& engine) {
  EngineConfiguration alone;
  alone.engine = engine.engine;
  alone.knobs = engine.knobs;
  const std::string text = toText(alone);
  return std::all_of(erratum.knobs.begin(), erratum.knobs.end(), [&](const std::string& knob) {
    return text.find(knob) != std::string::npos;
  });
}

/// Never destroyed: handles are used in static destructors.
struct InForce {
  ForkMutex mutex;
  std::string path;
  std::shared_ptr<const Errata> all = std::make_shared<const Errata>(builtInErrata());
  /// The errata of `all` that apply to a device, by its number; -1: a device that can't be asked.
  std::map<int, std::shared_ptr<const Errata>> byDevice;
  /// Whether some of `all` apply to this cuDNN. Mostly none does, and no lock is taken.
  std::atomic<bool> isAsked{false}, mayApply{true};
};

InForce& inForce() {
  static InForce& instance = *new InForce;
  return instance;
}

/// The device's compute capability times ten. 0: it can't be asked.
int capabilityOf(int device) noexcept {
  int major = 0, minor = 0;
  if (device < 0 ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
    return 0;
  return 10 * major + minor;
}

/// The errata of a device. If it can't be asked, those of any device are taken to be its own.
Errata thoseFor(const Errata& all, std::size_t cudnnVersion, int computeCapability) {
  Errata here;
  for (const Erratum& erratum : all)
    if (appliesTo(erratum,
                  cudnnVersion,
                  computeCapability != 0 ? computeCapability : erratum.computeCapability))
      here.push_back(erratum);
  return here;
}

/// The errata of the current device. Null: none.
std::shared_ptr<const Errata> errataHere() {
  InForce& force = inForce();
  if (force.isAsked.load(std::memory_order_acquire) && !force.mayApply) return nullptr;
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  {
    const std::lock_guard lock(force.mutex);
    if (const auto known = force.byDevice.find(device); known != force.byDevice.end())
      return known->second;
  }
  const int capability = capabilityOf(device);
  const std::size_t version = cudnn().getVersion();
  const std::lock_guard lock(force.mutex);
  force.mayApply = !thoseFor(*force.all, version, 0).empty();
  force.isAsked.store(true, std::memory_order_release);
  return force.byDevice[device] =
             std::make_shared<const Errata>(thoseFor(*force.all, version, capability));
}

std::string versionText(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

const Errata& builtInErrata() {
  static const Errata& all = *new Errata(makeBuiltIn());
  return all;
}

std::shared_ptr<const Errata> errataInForce() {
  InForce& force = inForce();
  const std::lock_guard lock(force.mutex);
  return force.all;
}

void useErrata(const std::string& path) {
  InForce& force = inForce();
  {
    const std::lock_guard lock(force.mutex);
    if (force.path == path) return;
  }
  auto errata = std::make_shared<const Errata>(path.empty() ? builtInErrata() : readErrata(path));
  const std::lock_guard lock(force.mutex);
  force.path = path;
  force.all = std::move(errata);
  force.byDevice.clear();
  force.isAsked.store(false, std::memory_order_release);
}

bool appliesTo(const Erratum& erratum, std::size_t cudnnVersion, int computeCapability) noexcept {
  return cudnnVersion >= erratum.fromVersion && cudnnVersion < erratum.endVersion &&
         (erratum.computeCapability == 0 || erratum.computeCapability == computeCapability);
}

bool bars(const Erratum& erratum,
          const Problem& problem,
          const EngineConfiguration* engine,
          bool mayUseTensorCores) {
  if (erratum.engine && (engine == nullptr || engine->engine != *erratum.engine)) return false;
  if (!erratum.operation.empty() && plain(erratum.operation) != plain(tagOf(problem))) return false;
  if (erratum.dimensions != 0 && erratum.dimensions != problem.dimensions) return false;
  if (erratum.inputType && *erratum.inputType != problem.xType) return false;
  if (erratum.leastBytes > std::max(problem.xBytes(), problem.yBytes())) return false;
  if (erratum.ofTensorCores && (!mayUseTensorCores || problem.mathType == CUDNN_FMA_MATH))
    return false;
  if (erratum.input && !hasShape(*erratum.input, problem, problem.xSizes)) return false;
  if (erratum.filter && !hasShape(*erratum.filter, problem, problem.wSizes)) return false;
  return erratum.knobs.empty() || (engine != nullptr && hasKnobs(erratum, *engine));
}

bool isBarred(const Problem& problem, const EngineConfiguration* engine, bool mayUseTensorCores) {
  const auto here = errataHere();
  return here != nullptr && std::any_of(here->begin(), here->end(), [&](const Erratum& erratum) {
           return bars(erratum, problem, engine, mayUseTensorCores);
         });
}

std::string toText(const Erratum& erratum) {
  std::string text = erratum.operation.empty() ? "any operation" : erratum.operation;
  if (erratum.engine) text += "_eng" + std::to_string(*erratum.engine);
  for (const std::string& knob : erratum.knobs) text += "_" + knob;
  if (erratum.inputType) text += erratum.inputType == CUDNN_DATA_BFLOAT16 ? ", bfloat16" : ", TF32";
  if (erratum.dimensions != 0) text += ", " + std::to_string(erratum.dimensions - 2) + "-D";
  if (erratum.leastBytes > 0)
    text += ", tensors of " + std::to_string(erratum.leastBytes >> 30) + " GiB or more";
  if (erratum.input) text += ", of one shape of the input";
  if (erratum.filter) text += ", of one shape of the filter";
  return text;
}

std::string machinesOf(const Erratum& erratum) {
  std::string text = "cuDNN";
  if (erratum.fromVersion > 0) text += " from " + versionText(erratum.fromVersion);
  if (erratum.endVersion != std::numeric_limits<std::size_t>::max())
    text += " before " + versionText(erratum.endVersion);
  if (erratum.computeCapability != 0)
    text += ", compute capability " + std::to_string(erratum.computeCapability / 10) + "." +
            std::to_string(erratum.computeCapability % 10);
  return text;
}

}  // namespace ucudnn
