// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/disk_cell.h"

#include <utility>

#include "common/base/check.h"

namespace vjbod::initiator {

DiskCell::DiskCell(Reactor& main, HostShard& home, std::string name, std::string socket_path,
                   DiskCellEvents& events)
    : main_(main),
      home_(home),
      name_(std::move(name)),
      socket_path_(std::move(socket_path)),
      events_(events) {}

DiskCell::~DiskCell() {
  VJBOD_CHECK(disk_ == nullptr && server_ == nullptr);
}

std::shared_ptr<DiskCell> DiskCell::make(Reactor& main, HostShard& home, std::vector<Shard*> others,
                                         DiskConfig config, std::string socket_path,
                                         DiskCellEvents& events) {
  std::shared_ptr<DiskCell> cell(
      new DiskCell(main, home, config.name, std::move(socket_path), events));
  auto shared_config = std::make_shared<DiskConfig>(std::move(config));
  home.shard.reactor().post([cell, shared_config, others = std::move(others)] {
    cell->disk_ =
        std::make_unique<Disk>(cell->home_.shard.reactor(), cell->home_.connectors,
                               std::move(*shared_config), static_cast<DiskObserver&>(*cell));
    NbdServerOptions options;
    options.socket.path = cell->socket_path_;
    options.connection.exported.name = cell->name_;
    cell->server_ =
        std::make_unique<NbdServer>(*cell->disk_, cell->home_.shard, others, std::move(options));
  });
  return cell;
}

void DiskCell::start(bool connect, std::function<void(vjbod::Status)> exported) {
  home_.shard.reactor().post([self = shared_from_this(), connect, exported = std::move(exported)] {
    if (self->closing_) return;
    vjbod::Status started = self->server_->start(*self);
    self->exported_ = started.has_value();
    if (started && connect) self->disk_->connect();
    self->main_.post([exported, started] { exported(started); });
  });
}

void DiskCell::with_disk(std::function<void(Disk&)> work) {
  home_.shard.reactor().post([self = shared_from_this(), work = std::move(work)] {
    if (!self->closing_) work(*self->disk_);
  });
}

void DiskCell::status(std::function<void(const DiskStatus&, size_t)> done) {
  home_.shard.reactor().post([self = shared_from_this(), done = std::move(done)] {
    DiskStatus status;
    size_t clients = 0;
    if (self->disk_) status = self->disk_->status();
    if (self->server_) clients = self->server_->connection_count();
    if (self->closing_) status.state = DiskState::detaching;
    self->main_.post([status = std::move(status), clients, done] { done(status, clients); });
  });
}

void DiskCell::close(bool restarts, std::function<void()> done) {
  home_.shard.reactor().post([self = shared_from_this(), restarts, done = std::move(done)] {
    if (self->disk_ == nullptr) {
      self->main_.post(done);
      return;
    }
    self->closed_.push_back(done);
    if (std::exchange(self->closing_, true)) return;
    auto detach = [self] {
      self->disk_->detach([self] {
        self->disk_closed_ = true;
        self->finish_if_closed();
      });
    };
    if (self->exported_ && restarts) return self->server_->hang_up(detach);
    if (self->exported_) self->server_->stop();
    detach();
  });
}

void DiskCell::on_disk_changed() {
  main_.post([&events = events_, name = name_, status = disk_->status()] {
    events.on_disk_changed(name, status);
  });
}

void DiskCell::on_identity_learned(const DiskIdentity& identity, const BlockGeometry& geometry) {
  main_.post([&events = events_, name = name_, identity, geometry] {
    events.on_disk_learned(name, identity, geometry);
  });
}

void DiskCell::on_frontend_closed() {
  exported_ = false;
  finish_if_closed();
}

void DiskCell::finish_if_closed() {
  if (!closing_ || !disk_closed_ || exported_) return;
  // Not from inside the calls of the two. The frontend knows the disk, so it goes first.
  home_.shard.reactor().post([self = shared_from_this()] {
    self->server_.reset();
    self->disk_.reset();
    for (auto& done : std::exchange(self->closed_, {})) self->main_.post(std::move(done));
  });
}

}  // namespace vjbod::initiator
