// SPDX-License-Identifier: Apache-2.0
// The course of one command in steps: what a class of commands does while it moves data and runs
// backstore operations. Lives inside its Execution, which tells it when a step has ended. Every
// course ends with execution_.finish(), after which it touches nothing any more.
#pragma once

#include <system_error>

#include "common/base/bytes.h"

namespace vjbod::scsi {

class Execution;

class Work {
 public:
  virtual void start() = 0;
  // The answer to Execution::put() or get().
  virtual void on_data_moved();
  // The answer to Execution::submit() or flush().
  virtual void on_op_done(std::error_code error);
  // The answer to Execution::want_scratch().
  virtual void on_scratch(Bytes memory);

 protected:
  explicit Work(Execution& execution) : execution_(execution) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() = default;

  Execution& execution_;
};

}  // namespace vjbod::scsi
