// SPDX-License-Identifier: Apache-2.0
// The end of a disk: detached, or deleted with its LUN, or closed with the daemon.
#include <filesystem>
#include <utility>

#include "common/rpc/errc.h"
#include "initiator/control/disk_manager.h"

namespace vjbod::initiator {

// The disk is closed here: forgets it, and tells the peer what becomes of the LUN.
void DiskManager::forget(const std::string& name, LunEnding ending, StatusDone done) {
  auto record = find(name);
  if (!record) {
    done({});
    return;
  }
  const std::string id = (*record)->uuid;
  const std::string unflushed = unflushed_path(**record);
  const FarewellRecord farewell = Farewells::of(**record, ending);
  const bool peer_knows_it = state_.peers.contains(farewell.peer) && !farewell.lun.empty();
  auto saved = state_.change([&](HostState& state) {
    state.disks.erase(name);
    if (peer_knows_it) state.farewells[id] = farewell;
  });
  if (!saved) {
    done(fail(saved.error()));
    return;
  }
  std::error_code ignored;  // it means nothing without its disk
  std::filesystem::remove(unflushed, ignored);
  event(rpc::Severity::info, "disk-detached", name, name + " is detached");
  farewells_.tell(id, [this, id, farewell, ending, done = std::move(done)](vjbod::Status told) {
    if (told || ending == LunEnding::let_go) {
      done({});
      return;
    }
    done(fail(rpc::Errc::partial, "the disk is detached, but its LUN {} is still on {}: {}{}",
              farewell.lun_name, farewell.peer, told.error().text,
              state_.farewells.contains(id) ? "; it is deleted as soon as possible" : ""));
  });
}

void DiskManager::end(const std::string& name, bool force, LunEnding ending, StatusDone done) {
  auto record = find(name);
  if (!record) {
    done(fail(record.error()));
    return;
  }
  const auto running = running_.find(name);
  if (running == running_.end()) {
    forget(name, ending, std::move(done));
    return;
  }
  if (running->second.busy) {
    done(fail(rpc::Errc::busy, "disk {} is being detached or deleted already", name));
    return;
  }
  running->second.busy = true;
  running->second.cell->status([this, name, force, ending, done = std::move(done)](
                                   const DiskStatus&, size_t clients) {
    const auto found = running_.find(name);
    if (found == running_.end()) {
      done({});
      return;
    }
    if (clients > 0 && !force) {
      found->second.busy = false;
      done(fail(rpc::Errc::busy,
                "disk {} is in use by {} NBD client{}; end them first, or detach it with --force, "
                "which makes their I/O fail",
                name, clients, clients == 1 ? "" : "s"));
      return;
    }
    // Nothing is closed that could not be forgotten.
    if (auto writable = state_.save(); !writable) {
      found->second.busy = false;
      done(fail(Error{writable.error().code,
                      writable.error().text + "; disk " + name + " stays attached"}));
      return;
    }
    found->second.cell->close(false, [this, name, ending, done] {
      // Those that wait for it to connect are told, once it is forgotten, that it will not.
      const auto waiting = std::move(running_.at(name).waiting);
      running_.erase(name);
      forget(name, ending, done);
      for (const auto& wait : waiting) wait(DiskStatus{});
    });
  });
}

void DiskManager::detach(const std::string& name, bool force, StatusDone done) {
  end(name, force, LunEnding::let_go, std::move(done));
}

void DiskManager::remove(const std::string& name, StatusDone done) {
  auto record = find(name);
  if (!record) {
    done(fail(record.error()));
    return;
  }
  if ((*record)->peer.empty()) {
    done(
        fail(rpc::Errc::usage,
             "disk {} is a LUN of a target that is not ours: it can be detached, and deleted there",
             name));
    return;
  }
  const auto running = running_.find(name);
  if (running != running_.end() && std::exchange(running->second.busy, true)) {
    done(fail(rpc::Errc::busy, "disk {} is being detached or deleted already", name));
    return;
  }
  // Nothing is detached before it is certain that the peer can be told to delete.
  peers_.describe((*record)->peer, [this, name, uuid = (*record)->uuid,
                                    done = std::move(done)](Result<v1::DescribeResponse> there) {
    // Another disk, of another LUN, may have the name by now.
    if (auto same = find_same(name, uuid); !same) {
      done(fail(same.error()));
      return;
    }
    if (const auto runs = running_.find(name); runs != running_.end()) runs->second.busy = false;
    if (!there) {
      done(fail(
          Error{there.error().code,
                there.error().text + "; nothing was deleted, and the disk is still attached"}));
      return;
    }
    end(name, false, LunEnding::deleted, done);
  });
}

void DiskManager::shutdown(std::function<void()> done) {
  stopping_ = true;
  auto left = std::make_shared<size_t>(running_.size());
  if (*left == 0) {
    done();
    return;
  }
  for (auto& [name, running] : running_) {
    running.busy = true;
    // Those that wait for it to connect are told that it will not.
    for (auto& wait : std::exchange(running.waiting, {})) wait(DiskStatus{});
    running.cell->close(true, [left, done] {
      if (--*left == 0) done();
    });
  }
}

}  // namespace vjbod::initiator
