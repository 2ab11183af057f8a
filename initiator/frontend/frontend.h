// SPDX-License-Identifier: Apache-2.0
// What exports one disk to this machine: an NBD server on a Unix socket, a ublk or a kernel NBD
// device. Made for one BlockDevice, which outlives it. All calls and upcalls on the device's
// reactor thread.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"

namespace vjbod::initiator {

class FrontendOwner {
 public:
  // The last upcall: nothing is exported any more and no request is at the device. The frontend may
  // be destroyed now (not from inside this call).
  virtual void on_frontend_closed() = 0;

 protected:
  ~FrontendOwner() = default;
};

class Frontend {
 public:
  virtual ~Frontend() = default;

  // Exports the disk. It need not be connected, nor its size be known yet. On an error, whose
  // sentence is for people, nothing is exported and on_frontend_closed does not come.
  virtual Status start(FrontendOwner& owner) = 0;

  // Ends the export: at once for new clients, within a moment for those that are there.
  // on_frontend_closed comes when the last request is back from the device. A device whose target
  // is gone gives them back when it is told to shut down; so do not wait for on_frontend_closed
  // before telling it.
  virtual void stop() = 0;
  // As stop(), for a daemon that ends and that another one follows: clients hear nothing of
  // requests that are not answered yet, so that they can ask again. `hung_up`: no answer leaves any
  // more.
  virtual void hang_up(std::function<void()> hung_up) = 0;

  // What people are shown and give to programs: a device node, or the path of a socket.
  virtual std::string device() const = 0;
  // For NBD clients; empty where there is none.
  virtual std::string uri() const = 0;
};

}  // namespace vjbod::initiator
