#include "backend_descriptor.hpp"

#include <algorithm>
#include <ostream>

namespace ucudnn::simulator::test {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  EXPECT_CUDNN(cudnnBackendCreateDescriptor(type, &handle_)) << type;
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnnBackendDestroyDescriptor(handle_);
}

std::vector<DescriptorPointer> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                       cudnnBackendDescriptorType_t type,
                                                       std::int64_t room) const {
  std::vector<DescriptorPointer> made;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < room; ++i) {
    made.push_back(std::make_unique<Descriptor>(type));
    handles.push_back(made.back()->get());
  }
  std::int64_t count = -1;
  EXPECT_CUDNN(cudnnBackendGetAttribute(
      handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &count, handles.data()));
  EXPECT_GE(count, 0);
  made.resize(static_cast<std::size_t>(count));
  return made;
}

std::ostream& operator<<(std::ostream& stream, const EngineText& text) {
  stream << "eng" << text.engine;
  for (const auto& [type, value] : text.knobs) stream << "_k" << type << "=" << value;
  return stream;
}

EngineText textOf(const Descriptor& config) {
  EngineText text;
  text.engine =
      engineOf(config)->one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
  for (const auto& knob : config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                             CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                             CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type =
        knob->one<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
    text.knobs[type] = knob->one<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64);
  }
  return text;
}

std::int64_t workspaceOf(const Descriptor& plan) {
  return plan.one<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
}

bool hasNote(const Descriptor& engine, cudnnBackendNumericalNote_t note) {
  const auto notes = engine.all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                             CUDNN_TYPE_NUMERICAL_NOTE);
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

bool hasBehavior(const Descriptor& engine, cudnnBackendBehaviorNote_t note) {
  const auto notes = engine.all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                            CUDNN_TYPE_BEHAVIOR_NOTE);
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

DescriptorPointer engineOf(const Descriptor& config) {
  auto engines =
      config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  EXPECT_EQ(1U, engines.size());
  return std::move(engines.front());
}

}  // namespace ucudnn::simulator::test
