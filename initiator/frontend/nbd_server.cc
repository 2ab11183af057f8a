// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <unistd.h>

#include "common/base/check.h"

namespace vjbod::initiator {

// A connection as the server sees it, and the path between their threads. The server's thread makes
// and destroys it; `connection` is touched on `shard` only. Messages to the connection are posted
// to its shard only until it has reported its end, and it is destroyed by a message behind them: so
// none can come too late.
class NbdServer::Client final : public nbd::ConnectionOwner {
 public:
  Client(NbdServer& owning_server, Shard& own_shard) : server(owning_server), shard(own_shard) {}

  void on_connection_finished(nbd::Connection&) override {
    server.home_.reactor().post([this] { server.on_client_finished(*this); });
  }

  NbdServer& server;
  Shard& shard;
  std::optional<nbd::Connection> connection;
  bool finished = false;
};

struct NbdServer::AcceptWatch
    : boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> {
  using basic_stream_descriptor::basic_stream_descriptor;
};

struct NbdServer::AcceptReady {
  using allocator_type = HandlerAllocator<>;
  allocator_type get_allocator() const { return allocator_type(server->accept_memory_); }
  void operator()(const boost::system::error_code&) const {
    server->accept_waits_ = false;
    server->accept_clients();
    server->close_if_over();
  }
  NbdServer* server;
};

NbdServer::NbdServer(BlockDevice& device, Shard& home, std::vector<Shard*> others,
                     NbdServerOptions options)
    : device_(device),
      home_(home),
      others_(std::move(others)),
      options_(std::move(options)),
      log_(options_.connection.exported.name + " nbd"),
      accept_watch_(std::make_unique<AcceptWatch>(home.reactor().io_context())),
      accept_again_(home.reactor(), [this] { accept_clients(); }) {
  VJBOD_CHECK(&device_.reactor() == &home_.reactor(), "not the disk's shard");
}

NbdServer::~NbdServer() {
  VJBOD_CHECK(owner_ == nullptr || closed_, "destroyed before it was closed");
}

Status NbdServer::start(FrontendOwner& owner) {
  Result<UnixListener> listener = UnixListener::open(options_.socket);
  if (!listener) return fail(std::move(listener).error());
  owner_ = &owner;
  listener_.emplace(std::move(*listener));
  accept_watch_->assign(listener_->fd());
  device_.add_observer(*this);
  log_.info("serving on {}", options_.socket.path);
  wait_for_clients();
  return {};
}

std::string NbdServer::uri() const {
  // Everything but what is plainly safe is escaped, as in any URI.
  std::string escaped;
  for (const char c : options_.socket.path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return "nbd+unix:///?socket=" + escaped;
}

void NbdServer::wait_for_clients() {
  if (accept_waits_ || stopping_) return;
  accept_waits_ = true;
  accept_watch_->async_wait(boost::asio::posix::descriptor_base::wait_read, AcceptReady{this});
}

void NbdServer::accept_clients() {
  while (!stopping_) {
    const int fd = listener_->accept();
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      log_.error("cannot accept a client: {}", system_code(errno).message());
      accept_again_.arm_after(accept_pause);
      return;
    }
    if (connection_count() >= options_.connections_max) {
      log_.warn("a client was turned away: {} are connected, the limit", connection_count());
      ::close(fd);
      continue;
    }
    const uint64_t number = ++clients_seen_;
    Newcomer& newcomer = newcomers_[number];
    newcomer.fd = fd;
    ask_who_is_gone(number, newcomer);
  }
  wait_for_clients();
}

void NbdServer::ask_who_is_gone(uint64_t number, Newcomer& newcomer) {
  for (auto& client : clients_)
    if (!client->finished) newcomer.before.insert(client.get());
  if (newcomer.before.empty()) {
    let_in(newcomer.fd, number);
    newcomers_.erase(number);
    return;
  }
  for (auto& client : clients_) {
    if (client->finished) continue;
    client->shard.reactor().post([this, &client = *client, number] {
      if (client.connection->client_gone()) return;  // until it is over
      home_.reactor().post([this, &client, number] { no_longer_before(number, client); });
    });
  }
}

void NbdServer::no_longer_before(uint64_t number, const Client& client) {
  const auto found = newcomers_.find(number);
  if (found == newcomers_.end()) return;
  found->second.before.erase(&client);
  if (!found->second.before.empty()) return;
  const int fd = found->second.fd;
  newcomers_.erase(found);
  let_in(fd, number);
}

void NbdServer::let_in(int fd, uint64_t number) {
  Shard& shard = choose_shard();
  clients_.push_back(std::make_unique<Client>(*this, shard));
  Client& client = *clients_.back();
  std::optional<BlockGeometry> geometry;
  if (device_.geometry_known()) geometry = device_.geometry();
  shard.reactor().post([this, &client, fd, geometry, number] {
    client.connection.emplace(
        fd, fmt::format("{} nbd client {}", options_.connection.exported.name, number), device_,
        home_.reactor(), client.shard.reactor(), options_.connection, client);
    if (geometry) client.connection->set_geometry(*geometry);
    client.connection->start();
  });
}

Shard& NbdServer::choose_shard() {
  const bool home_is_free = std::none_of(clients_.begin(), clients_.end(), [this](auto& client) {
    return &client->shard == &home_ && !client->finished;
  });
  if (home_is_free || others_.empty()) return home_;
  return *others_[next_other_++ % others_.size()];
}

void NbdServer::on_geometry(const BlockGeometry& geometry) {
  for (auto& client : clients_) {
    if (client->finished) continue;
    client->shard.reactor().post(
        [&client = *client, geometry] { client.connection->set_geometry(geometry); });
  }
}

void NbdServer::on_client_finished(Client& client) {
  client.finished = true;
  std::vector<uint64_t> waiting;
  for (const auto& [number, newcomer] : newcomers_)
    if (newcomer.before.contains(&client)) waiting.push_back(number);
  for (const uint64_t number : waiting) no_longer_before(number, client);
  client.shard.reactor().post([this, &client] {
    client.connection.reset();
    home_.reactor().post([this, &client] { on_client_gone(client); });
  });
}

void NbdServer::on_client_gone(Client& client) {
  std::erase_if(clients_, [&client](auto& held) { return held.get() == &client; });
  close_if_over();
}

void NbdServer::stop() {
  if (stopping_ || owner_ == nullptr) return;
  end_export();
  for (auto& client : clients_) {
    if (client->finished) continue;
    client->shard.reactor().post([&client = *client] { client.connection->stop(); });
  }
}

void NbdServer::hang_up(std::function<void()> hung_up) {
  if (stopping_ || owner_ == nullptr) return hung_up();
  end_export();
  // The last one to let go of it says that all have hung up.
  std::shared_ptr<void> all(nullptr,
                            [&home = home_.reactor(), hung_up](void*) { home.post(hung_up); });
  for (auto& client : clients_) {
    if (client->finished) continue;
    client->shard.reactor().post([&client = *client, all] { client.connection->hang_up(); });
  }
}

void NbdServer::end_export() {
  stopping_ = true;
  for (const auto& [number, newcomer] : newcomers_) ::close(newcomer.fd);
  newcomers_.clear();
  device_.remove_observer(*this);
  accept_again_.cancel();
  accept_watch_->release();  // the listener's; ends the wait
  listener_.reset();
  log_.info("export ends, {} clients are connected", clients_.size());
  home_.reactor().post([this] { close_if_over(); });
}

void NbdServer::close_if_over() {
  if (!stopping_ || closed_ || accept_waits_ || !clients_.empty()) return;
  closed_ = true;
  log_.info("export closed");
  owner_->on_frontend_closed();
}

}  // namespace vjbod::initiator
