// What a test tells the processes that it starts with mpirun.
#pragma once

#include "heads/heads_config.h"
#include "train/joint/joint_config.h"
#include "train/train_config.h"

namespace medusa {

/// <folder>/<name>.yaml, for all processes; <folder>/<name>-<rank>.yaml is one process's own.
struct PartSettings {
  TrainConfig train;
  HeadsConfig heads;
  JointConfig joint;

  template <typename Fields>
  void fields(Fields& f) {
    f.section("train", train, "");
    f.section("heads", heads, "");
    f.section("joint", joint, "");
  }
  void validate() const {}
};

}  // namespace medusa
