// SPDX-License-Identifier: Apache-2.0
// The making of a disk: record, way, LUN at the peer, export, first connection. Every step can be
// repeated: the disk's UUID is the LUN's request id, so the same create again goes on where an
// interrupted one stopped.
#include <algorithm>
#include <utility>

#include <sys/un.h>

#include "common/base/random.h"
#include "common/config/values.h"
#include "common/iscsi/chap.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/name.h"
#include "common/rpc/errc.h"
#include "initiator/control/disk_manager.h"
#include "initiator/control/refusal.h"
#include "initiator/disk/geometry.h"

namespace vjbod::initiator {

namespace {

constexpr Duration provision_timeout = std::chrono::minutes(5);  // a thick LUN takes time
constexpr Duration open_timeout = std::chrono::seconds(15);
constexpr Duration first_connect_timeout = std::chrono::seconds(30);
constexpr size_t serial_bytes_max = 252;  // SPC-4 7.8.18: the page's length is one byte

std::string new_uuid() {
  std::array<std::byte, 16> bytes;
  fill_secure_random(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};  // RFC 9562: version 4, variant 1
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  std::string hex = to_hex(as_text(bytes));
  for (size_t position : {20u, 16u, 12u, 8u}) hex.insert(position, "-");
  return hex;
}

// RFC 7143 section 11.12.5: the "random" type; 40 bits make two disks of a box differ.
std::string new_isid() {
  std::array<std::byte, 6> bytes;
  fill_secure_random(bytes);
  bytes[0] = std::byte{0x80};
  return to_hex(as_text(bytes));
}

// An outcome that leaves it open whether the peer has made the LUN.
bool outcome_unknown(const Error& error) {
  // The last one: this daemon is stopping and has cut the call off.
  return error.code == rpc::Errc::timeout || error.code == rpc::Errc::peer_unreachable ||
         error.code == rpc::Errc::daemon_not_running;
}

}  // namespace

vjbod::Status merge_choices(const v1::DiskOptions& options, DiskChoices& choices) {
  if (options.has_host_interface()) choices.host_interface = options.host_interface();
  if (options.has_remote_interface()) choices.remote_interface = options.remote_interface();
  if (options.has_transport()) {
    choices.transport = options.transport() == v1::TRANSPORT_ISER    ? "iser"
                        : options.transport() == v1::TRANSPORT_ISCSI ? "iscsi"
                                                                     : "auto";
  }
  if (options.has_backend()) choices.backend = options.backend();
  if (options.has_on_loss()) choices.on_loss = options.on_loss();
  if (options.has_io_timeout_s()) choices.io_timeout_s = options.io_timeout_s();
  if (options.has_header_digest()) choices.header_digest = options.header_digest();
  if (options.has_data_digest()) choices.data_digest = options.data_digest();
  for (const auto& [what, interface] : {std::pair("host interface", &choices.host_interface),
                                        std::pair("remote interface", &choices.remote_interface)}) {
    if (interface->empty()) continue;
    if (auto named = config::check_interface_name(what, *interface); !named) return named;
  }
  if (choices.on_loss != "queue" && choices.on_loss != "fail") {
    return fail(rpc::Errc::usage, "on-loss is queue or fail");
  }
  if (options.has_upgrade()) choices.upgrade = options.upgrade();
  if (choices.upgrade != "manual" && choices.upgrade != "idle")
    return fail(rpc::Errc::usage, "upgrade is manual or idle");
  if (choices.backend == "ublk" || choices.backend == "nbd") {
    return fail(rpc::Errc::no_backend,
                "back end {} is not available in this version; use auto or socket",
                choices.backend);
  }
  if (!choices.backend.empty() && choices.backend != "auto" && choices.backend != "socket") {
    return fail(rpc::Errc::usage, "a back end is auto, ublk, nbd or socket");
  }
  return {};
}

struct DiskManager::Job {
  std::string name, uuid;           // of its record
  std::optional<DiskRecord> asked;  // as the peer was asked for it
  bool no_wait = false;
  bool made_record = false;                          // to be taken back when it fails for good
  std::map<std::string, FarewellRecord> taken_back;  // void if the attach comes to its end
  Progress progress;
  DiskDone done;
  std::vector<PathCandidate> paths;
  std::string host_interface, remote_interface;
  std::optional<NoIser> no_iser;
};

void DiskManager::finish(std::shared_ptr<Job> job, Result<v1::Disk> result) {
  if (auto done = std::exchange(job->done, nullptr)) done(std::move(result));
}

Result<DiskRecord*> DiskManager::record_of(const Job& job) {
  return find_same(job.name, job.uuid);
}

void DiskManager::take_back(const Job& job) {
  if (job.made_record && record_of(job)) state_.disks.erase(job.name);
}

void DiskManager::let_go(const Job& job, const Result<v1::LunAccess>& access) {
  if (!access && !outcome_unknown(access.error())) return;
  FarewellRecord farewell = Farewells::of(*job.asked, LunEnding::let_go);
  if (access) farewell.lun = access->lun().naa();
  // A disk that was attached to it meanwhile goes on to use it.
  for (const auto& [name, disk] : state_.disks)
    if (farewell.ending == LunEnding::let_go && disk.peer == farewell.peer &&
        (disk.lun_name == farewell.lun_name ||
         (disk.identity && disk.identity->naa == "naa." + farewell.lun)))
      return;
  state_.farewells[job.uuid] = std::move(farewell);
  (void)save(job.name);
  farewells_.tell(job.uuid, [](vjbod::Status) {});
}

Result<DiskRecord> DiskManager::new_record(const std::string& name,
                                           const v1::DiskOptions& options) const {
  if (auto named = config::check_name("disk name", name); !named) {
    return fail(rpc::Errc::usage, "{}", named.error().text);
  }
  if (state_.disks.size() >= config_.limits.disks_max) {
    return fail(rpc::Errc::other, "there are {} disks, which is the limit (limits.disks_max)",
                state_.disks.size());
  }
  if (const std::string socket = socket_path(name); socket.size() >= sizeof(sockaddr_un::sun_path))
    return fail(rpc::Errc::usage,
                "the socket {} of the disk would have {} bytes, and {} are possible: use a shorter "
                "name, or a shorter export.socket_dir",
                socket, socket.size(), sizeof(sockaddr_un::sun_path) - 1);
  DiskRecord record;
  record.name = name;
  record.uuid = new_uuid();
  record.isid = new_isid();
  if (config_.exports.backend == "ublk" || config_.exports.backend == "nbd") {
    if (!options.has_backend()) {
      return fail(rpc::Errc::no_backend,
                  "back end {} of the configuration is not available in this version; use auto or "
                  "socket",
                  config_.exports.backend);
    }
  }
  if (auto merged = merge_choices(options, record.choices); !merged) return fail(merged.error());
  return record;
}

void DiskManager::create(const v1::CreateDiskRequest& request, Progress progress, DiskDone done) {
  auto job = std::make_shared<Job>();
  job->name = request.disk();
  job->no_wait = request.no_wait();
  job->progress = std::move(progress);
  job->done = std::move(done);
  const uint32_t block_size = request.block_size() == 0 ? 512 : request.block_size();
  if (auto size = config::check_lun_size(request.size_bytes(), block_size); !size) {
    finish(job, fail(rpc::Errc::usage, "{}", size.error().text));
    return;
  }
  if (auto named = config::check_name("pool name", request.pool()); !named) {
    finish(job, fail(named.error()));
    return;
  }
  if (auto peer = peers_.record(request.peer()); !peer) {
    finish(job, fail(peer.error()));
    return;
  }
  auto existing = state_.disks.find(job->name);
  if (existing != state_.disks.end()) {
    const DiskRecord& disk = existing->second;
    job->uuid = disk.uuid;
    if (disk.peer != request.peer() || disk.pool != request.pool() ||
        disk.size_bytes != request.size_bytes() || disk.block_size != block_size ||
        disk.thick != request.thick()) {
      finish(job, fail(rpc::Errc::already_exists, "disk {} exists already, with other properties",
                       job->name));
      return;
    }
    if (running_.contains(job->name)) {  // the same request again
      view(job->name, [this, job](Result<v1::Disk> disk_now) { finish(job, std::move(disk_now)); });
      return;
    }
  } else {
    auto record = new_record(job->name, request.options());
    if (!record) {
      finish(job, fail(record.error()));
      return;
    }
    record->peer = request.peer();
    record->pool = request.pool();
    record->lun_name = job->name;
    record->size_bytes = request.size_bytes();
    record->block_size = block_size;
    record->thick = request.thick();
    auto taken_back = farewells_.take_back_unnamed(record->peer, record->lun_name);
    if (!taken_back) {
      finish(job, fail(taken_back.error()));
      return;
    }
    job->taken_back = std::move(*taken_back);
    job->uuid = record->uuid;
    state_.disks[job->name] = std::move(*record);
    job->made_record = true;
  }
  choose_path(job, [this, job] { provision(job); });
}

void DiskManager::attach(const v1::AttachDiskRequest& request, Progress progress, DiskDone done) {
  auto job = std::make_shared<Job>();
  job->name = request.disk();
  job->no_wait = request.no_wait();
  job->progress = std::move(progress);
  job->done = std::move(done);
  auto record = new_record(job->name, request.options());
  if (!record) {
    finish(job, fail(record.error()));
    return;
  }
  if (request.has_foreign()) {
    const v1::ForeignTarget& foreign = request.foreign();
    auto target = iscsi::normalised_name(foreign.target_iqn());
    if (!target) {
      finish(job, fail(rpc::Errc::usage, "--target: {}", target.error().text));
      return;
    }
    if (!config::is_numeric_address(foreign.address())) {
      finish(job, fail(rpc::Errc::usage, "--portal: give a numeric address"));
      return;
    }
    if (foreign.lun_number() > 16383) {
      finish(job, fail(rpc::Errc::usage, "--lun: a LUN number is at most 16383"));
      return;
    }
    if (foreign.port() > UINT16_MAX) {
      finish(job, fail(rpc::Errc::usage, "--portal: a port is at most {}", UINT16_MAX));
      return;
    }
    for (const std::string* user : {&foreign.chap_user(), &foreign.mutual_user()}) {
      if (user->empty()) continue;
      if (auto checked = iscsi::check_chap_name(*user); !checked) {
        finish(job, fail(rpc::Errc::usage, "{}", checked.error().text));
        return;
      }
    }
    if (foreign.mutual_user().empty() != foreign.mutual_secret().empty() ||
        foreign.chap_user().empty() != foreign.chap_secret().empty() ||
        (!foreign.mutual_user().empty() && foreign.chap_user().empty())) {
      finish(job, fail(rpc::Errc::usage,
                       "CHAP needs a user and a secret, and mutual CHAP needs both pairs"));
      return;
    }
    record->target_iqn = *target;
    record->lun_number = static_cast<uint16_t>(foreign.lun_number());
    if (!foreign.chap_user().empty()) {
      record->chap = StoredChap{foreign.chap_user(), foreign.chap_secret()};
    }
    if (!foreign.mutual_user().empty()) {
      record->mutual = StoredChap{foreign.mutual_user(), foreign.mutual_secret()};
    }
    PortalRecord portal;
    portal.address = foreign.address();
    portal.port = static_cast<uint16_t>(foreign.port() == 0 ? 3260 : foreign.port());
    portal.interface_name = record->choices.host_interface;
    record->portals = {portal};
  } else {
    record->peer = request.peer_lun().peer();
    record->lun_name = request.peer_lun().lun();
    if (!config::is_name(record->lun_name)) {  // the digits of an NAA make a name, too
      finish(job, fail(rpc::Errc::usage,
                       "\"{}\" is neither the name nor the NAA of a LUN; see: vjbod luns",
                       config::printable(record->lun_name, config::name_bytes_max)));
      return;
    }
    if (auto peer = peers_.record(record->peer); !peer) {
      finish(job, fail(peer.error()));
      return;
    }
  }
  if (auto existing = state_.disks.find(job->name); existing != state_.disks.end()) {
    const DiskRecord& disk = existing->second;
    const bool same =
        disk.peer == record->peer &&
        (record->peer.empty()
             ? disk.target_iqn == record->target_iqn && disk.lun_number == record->lun_number &&
                   disk.chap == record->chap && disk.mutual == record->mutual
             : disk.lun_name == record->lun_name ||
                   (disk.identity && disk.identity->naa == "naa." + record->lun_name));
    if (!same || !running_.contains(job->name)) {
      finish(job, fail(rpc::Errc::already_exists, "disk {} exists already, with other properties",
                       job->name));
      return;
    }
    view(job->name, [this, job](Result<v1::Disk> disk_now) { finish(job, std::move(disk_now)); });
    return;
  }
  if (const DiskRecord* other = other_disk_of(*record)) {
    finish(job, fail(rpc::Errc::already_exists, "this LUN is attached already, as disk {}",
                     other->name));
    return;
  }
  const std::string lun = record->lun_name;
  const bool foreign = record->peer.empty();
  job->uuid = record->uuid;
  if (!foreign) {
    auto taken_back = farewells_.take_back(record->peer, lun);
    if (!taken_back) {
      finish(job, fail(taken_back.error()));
      return;
    }
    job->taken_back = std::move(*taken_back);
  }
  state_.disks[job->name] = std::move(*record);
  job->made_record = true;
  if (foreign) {
    DiskRecord& made = state_.disks[job->name];
    made.phase = DiskRecord::Phase::ready;
    auto choice = foreign_paths(made, made.choices);
    if (!choice) {
      state_.disks.erase(job->name);
      finish(job, fail(choice.error()));
      return;
    }
    made.portals = portals_of(choice->candidates);
    job->paths = choice->candidates;
    job->no_iser = choice->no_iser;
    job->host_interface = choice->host_interface;
    if (auto saved = save(job->name); !saved) {
      state_.disks.erase(job->name);
      finish(job, fail(saved.error()));
      return;
    }
    bring_up(job);
    return;
  }
  choose_path(job, [this, job, lun] { open_lun(job, lun); });
}

void DiskManager::choose_path(std::shared_ptr<Job> job, std::function<void()> next) {
  const DiskRecord& record = state_.disks.at(job->name);
  const std::string peer = record.peer;
  job->progress("choose-path", fmt::format("choosing the way to {}", peer));
  auto give_up = [this, job](const Error& error) {
    take_back(*job);
    farewells_.put_back(std::move(job->taken_back));
    finish(job, fail(error));
  };
  peers_.describe(peer, [this, job, peer, give_up,
                         next = std::move(next)](Result<v1::DescribeResponse> described) {
    if (!described) {
      give_up(described.error());
      return;
    }
    auto record_now = record_of(*job);
    auto interfaces = net::list_interfaces();
    auto peer_record = peers_.record(peer);
    if (!record_now || !interfaces || !peer_record) {
      give_up(!record_now   ? record_now.error()
              : !interfaces ? interfaces.error()
                            : peer_record.error());
      return;
    }
    auto choice =
        choose_paths(*interfaces, *described, (*peer_record)->address, (*record_now)->choices);
    if (!choice) {
      give_up(choice.error());
      return;
    }
    job->paths = choice->candidates;
    job->host_interface = choice->host_interface;
    job->remote_interface = choice->remote_interface;
    job->no_iser = choice->no_iser;
    (*record_now)->portals = portals_of(choice->candidates);
    job->progress("choose-path",
                  fmt::format("{} by {}{}", transport::text_of(job->paths[0].endpoint),
                              transport::name_of(job->paths[0].kind),
                              choice->explanation.empty() ? "" : " (" + choice->explanation + ")"));
    // From here on an interruption can be picked up again.
    if (auto saved = save(job->name); !saved) {
      give_up(saved.error());
      return;
    }
    next();
  });
}

vjbod::Status DiskManager::take_access(DiskRecord& record, const v1::LunAccess& access) {
  auto target = iscsi::normalised_name(access.lun().target_iqn());
  if (!target) return fail(target.error());
  if (access.lun().lun_number() > 16383) {
    return fail(rpc::Errc::other, "{} gave LUN number {}, which cannot be", record.peer,
                access.lun().lun_number());
  }
  if (auto named = config::check_name("the LUN's name", access.lun().name()); !named) {
    return fail(named.error());
  }
  if (auto named = config::check_name("the LUN's pool", access.lun().pool()); !named)
    return fail(named.error());
  if (auto size = config::check_lun_size(access.lun().size_bytes(), access.lun().block_size());
      !size)
    return fail(rpc::Errc::other, "{} gave a LUN of a {}", record.peer, size.error().text);
  const std::string& naa = access.lun().naa();
  if (naa.size() != 16 || !from_hex(naa) ||
      access.lun().serial() != config::printable(access.lun().serial(), serial_bytes_max))
    return fail(rpc::Errc::other, "{} gave a LUN whose NAA or serial number is none", record.peer);
  for (const std::string* user : {&access.chap_user(), &access.mutual_user()}) {
    if (auto checked = iscsi::check_chap_name(*user); !checked) return fail(checked.error());
  }
  for (const std::string* secret : {&access.chap_secret(), &access.mutual_secret()}) {
    if (auto checked = iscsi::check_secret(*secret); !checked) return fail(checked.error());
  }
  record.target_iqn = *target;
  record.lun_number = static_cast<uint16_t>(access.lun().lun_number());
  record.lun_name = access.lun().name();
  record.pool = access.lun().pool();
  record.block_size = access.lun().block_size();
  record.chap = StoredChap{access.chap_user(), access.chap_secret()};
  record.mutual = StoredChap{access.mutual_user(), access.mutual_secret()};
  DiskIdentity identity;
  identity.naa = "naa." + access.lun().naa();
  identity.serial = access.lun().serial();
  identity.size_bytes = access.lun().size_bytes();
  identity.block_bytes = access.lun().block_size();
  record.identity = identity;
  record.phase = DiskRecord::Phase::ready;
  return {};
}

const DiskRecord* DiskManager::other_disk_of(const DiskRecord& record) const {
  for (const auto& [name, disk] : state_.disks) {
    if (name == record.name) continue;
    const bool same_way = !record.target_iqn.empty() && disk.target_iqn == record.target_iqn &&
                          disk.lun_number == record.lun_number;
    const bool same_name = !record.peer.empty() && disk.peer == record.peer &&
                           (disk.lun_name == record.lun_name ||
                            (disk.identity && disk.identity->naa == "naa." + record.lun_name));
    const bool same_identity = record.identity && disk.identity && !record.identity->naa.empty() &&
                               disk.identity->naa == record.identity->naa;
    if (same_way || same_name || same_identity) return &disk;
  }
  return nullptr;
}

void DiskManager::provision(std::shared_ptr<Job> job) {
  const DiskRecord& record = state_.disks.at(job->name);
  auto link = peers_.link(record.peer);
  if (!link) {
    finish(job, fail(link.error()));
    return;
  }
  job->asked = record;
  job->progress("create-lun", fmt::format("making the LUN on {}", record.peer));
  v1::ProvisionLunRequest request;
  request.set_request_id(record.uuid);
  request.set_name(record.lun_name);
  request.set_pool(record.pool);
  request.set_size_bytes(record.size_bytes);
  request.set_block_size(record.block_size);
  request.set_thick(record.thick);
  (*link)->call<v1::ProvisionLunRequest, v1::LunAccess>(
      &PeerLink::Service::Stub::async_interface::ProvisionLun, request, provision_timeout,
      [this, job](Result<v1::LunAccess> access) {
        auto now = record_of(*job);
        if (!now) {
          let_go(*job, access);
          finish(job, fail(now.error()));
          return;
        }
        const DiskRecord before = **now;
        auto taken = access ? take_access(**now, *access) : vjbod::Status(fail(access.error()));
        if (!taken) {
          if (!outcome_unknown(taken.error())) {
            state_.disks.erase(job->name);
            farewells_.put_back(std::move(job->taken_back));
            (void)save(job->name);
            finish(job, fail(taken.error()));
            return;
          }
          finish(job, fail(Error{taken.error().code,
                                 taken.error().text +
                                     "; the same create again goes on from here, `vjbod detach " +
                                     job->name + "` gives up"}));
          return;
        }
        if (auto saved = save(job->name); !saved) {
          state_.disks[job->name] = before;
          finish(job,
                 fail(Error{saved.error().code,
                            saved.error().text + "; the same create again goes on from here"}));
          return;
        }
        bring_up(job);
      });
}

void DiskManager::open_lun(std::shared_ptr<Job> job, const std::string& lun) {
  const DiskRecord& record = state_.disks.at(job->name);
  auto link = peers_.link(record.peer);
  if (!link) {
    finish(job, fail(link.error()));
    return;
  }
  job->asked = record;
  job->progress("open-lun", fmt::format("opening LUN {} of {}", lun, record.peer));
  v1::OpenLunRequest request;
  request.set_lun(lun);
  (*link)->call<v1::OpenLunRequest, v1::LunAccess>(
      &PeerLink::Service::Stub::async_interface::OpenLun, request, open_timeout,
      [this, job](Result<v1::LunAccess> access) {
        auto now = record_of(*job);
        if (!now) {
          let_go(*job, access);
          finish(job, fail(now.error()));
          return;
        }
        auto taken = access ? take_access(**now, *access) : vjbod::Status(fail(access.error()));
        const DiskRecord* other = taken ? other_disk_of(**now) : nullptr;
        const bool others_binding = other != nullptr && !other->peer.empty();
        if (other != nullptr)
          taken = fail(rpc::Errc::already_exists, "this LUN is attached already, as disk {}",
                       other->name);
        if (taken) taken = save(job->name);
        if (!taken) {
          const DiskRecord gone = state_.disks.at(job->name);
          state_.disks.erase(job->name);
          farewells_.put_back(std::move(job->taken_back));
          const bool may_be_bound = access ? !others_binding : outcome_unknown(access.error());
          if (may_be_bound) state_.farewells[gone.uuid] = Farewells::of(gone, LunEnding::let_go);
          (void)save(job->name);
          farewells_.tell(gone.uuid, [](vjbod::Status) {});
          finish(job, fail(taken.error()));
          return;
        }
        bring_up(job);
      });
}

void DiskManager::bring_up(std::shared_ptr<Job> job) {
  if (stopping_) {
    put_off(job);
    return;
  }
  if (running_.contains(job->name)) {  // the same request, given twice, was faster the other time
    if (job->no_wait) {
      view(job->name, [this, job](Result<v1::Disk> disk) { finish(job, std::move(disk)); });
    } else {
      wait_connected(job);
    }
    return;
  }
  const DiskRecord& record = state_.disks.at(job->name);
  job->progress("export", "exporting the disk");
  Running& running = run(record, job->paths);
  running.host_interface = job->host_interface;
  running.remote_interface = job->remote_interface;
  running.no_iser = job->no_iser;
  running.cell->start(true, [this, job](vjbod::Status exported) {
    const auto found = running_.find(job->name);
    if (!record_of(*job) || found == running_.end()) {
      finish(job, fail(rpc::Errc::not_found, "disk {} was detached meanwhile", job->name));
      return;
    }
    if (!exported) {
      found->second.export_error = exported.error().text;
      event(rpc::Severity::error, "export-failed", job->name, exported.error().text);
      found->second.cell->with_disk([](Disk& disk) { disk.connect(); });
      finish(job, fail(rpc::Errc::no_backend, "disk {} is made, but cannot be exported: {}",
                       job->name, exported.error().text));
      return;
    }
    if (job->no_wait) {
      view(job->name, [this, job](Result<v1::Disk> disk) { finish(job, std::move(disk)); });
      return;
    }
    wait_connected(job);
  });
}

void DiskManager::put_off(std::shared_ptr<Job> job) {
  finish(job,
         fail(rpc::Errc::daemon_not_running,
              "the host daemon is stopping; disk {} is attached at its next start", job->name));
}

// The first connection has ended in `failed` or `stale`. A disk of another target has no trace but
// its record, so that is taken back: the person corrects the command and gives it again.
void DiskManager::refused(std::shared_ptr<Job> job, const DiskStatus& status) {
  if (stopping_) {
    put_off(job);
    return;
  }
  const auto found = record_of(*job);
  if (!found) {
    finish(job, fail(found.error()));
    return;
  }
  const DiskRecord& record = **found;
  const std::error_code why = refusal_kind(status);
  const std::string reason = status.last_error ? status.last_error->text : "no reason is known";
  if (status.state == DiskState::connecting && !record.peer.empty()) {
    finish(job,
           fail(rpc::Errc::iser_unavailable,
                "disk {0} is made, but iSER, which was required, does not work: {1} It goes on "
                "trying; `vjbod edit {0} --transport auto` lets it use iSCSI",
                job->name, status.rdma_failure->text));
    return;
  }
  if (!record.peer.empty() || !job->made_record) {
    finish(job, fail(Error{why, fmt::format("disk {} is {}: {}", job->name, name_of(status.state),
                                            reason)}));
    return;
  }
  std::string advice;
  if (why == rpc::Errc::authentication) {
    advice = record.chap ? " Check the users and the secret files of CHAP, here and at the target."
                         : " It may want CHAP: --chap-user and --chap-secret-file.";
  } else if (why == rpc::Errc::not_found) {
    advice = " Check --portal, --target and --lun.";
  } else if (why == rpc::Errc::permission) {
    advice = fmt::format(" Let {} use it there.", state_.initiator_iqn);
  }
  end(job->name, true, LunEnding::let_go, [this, job, why, reason, advice](vjbod::Status) {
    finish(
        job,
        fail(Error{why, fmt::format("disk {} was not attached: {}{}", job->name, reason, advice)}));
  });
}

void DiskManager::wait_connected(std::shared_ptr<Job> job) {
  if (stopping_) {
    put_off(job);
    return;
  }
  job->progress("connect", "connecting");
  auto timer = std::make_shared<std::unique_ptr<Timer>>();
  *timer = std::make_unique<Timer>(reactor_, [this, job, timer] {
    if (job->done == nullptr) return;
    if (auto still = record_of(*job); !still) {
      finish(job, fail(still.error()));
      reactor_.post([timer] { timer->reset(); });
      return;
    }
    view(job->name, [this, job, timer](Result<v1::Disk> disk) {
      const std::string note = disk ? disk->note() : disk.error().text;
      finish(job,
             fail(rpc::Errc::timeout,
                  "disk {} is made and goes on connecting, but has not got through within {} s: "
                  "{}",
                  job->name,
                  std::chrono::duration_cast<std::chrono::seconds>(first_connect_timeout).count(),
                  note));
      reactor_.post([timer] { timer->reset(); });
    });
  });
  (*timer)->arm_after(first_connect_timeout);
  auto settled = [this, job, timer](const DiskStatus& status) {
    reactor_.post([timer] { timer->reset(); });
    if (job->done == nullptr) return;
    if (status.state == DiskState::connected) {
      job->progress("done", fmt::format("{} is connected", job->name));
      view(job->name, [this, job](Result<v1::Disk> disk) { finish(job, std::move(disk)); });
      return;
    }
    refused(job, status);
  };
  // It may have got there before anybody waited.
  running_.at(job->name).waiting.push_back(settled);
  running_.at(job->name).cell->status([this, job](const DiskStatus& status, size_t) {
    if (running_.contains(job->name)) on_disk_changed(job->name, status);
  });
}

}  // namespace vjbod::initiator
