// SPDX-License-Identifier: Apache-2.0
// What the host daemon must not forget: who it is as an initiator, whom it is paired with, and its
// disks with everything needed to attach them again. Saved as one file, whole or not at all
// (common/config/state_file.h). Main reactor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/config/state_file.h"
#include "common/rpc/identity.h"
#include "initiator/disk/block_device.h"
#include "initiator/disk/disk_identity.h"

namespace vjbod::initiator {

struct PeerRecord {
  std::string name;
  std::string address;  // numeric or a name, as it was reached
  uint16_t port = 0;
  rpc::Fingerprint fingerprint;
  std::string paired_at;  // RFC 3339
};

struct PortalRecord {
  std::string address;
  uint16_t port = 0;
  std::string source_address, interface_name;  // of this box, to bind to; empty: any
  std::string transport = "iscsi";             // "iscsi", "iser"
  bool operator==(const PortalRecord&) const = default;
};

// What a person can choose for a disk.
struct DiskChoices {
  std::string host_interface, remote_interface;  // empty: any
  std::string transport = "auto";                // "auto", "iser", "iscsi"
  std::string backend;                           // empty: the daemon's default
  std::string on_loss = "queue";                 // "queue", "fail"
  uint32_t io_timeout_s = 600;                   // 0: none
  bool header_digest = false, data_digest = false;
  // When a disk that fell back from iSER goes there again before it loses its connection:
  // "manual": when a person says so; "idle": by itself, once nothing is going on.
  std::string upgrade = "manual";
  bool operator==(const DiskChoices&) const = default;
};

// CHAP as it is stored: the secret as bytes. Never printed.
struct StoredChap {
  std::string user;
  std::string secret;
  bool operator==(const StoredChap&) const = default;
};

struct DiskRecord {
  enum class Phase { creating, ready };

  std::string name;
  std::string uuid;  // of the disk; also the request id of its LUN's creation
  Phase phase = Phase::creating;
  bool wanted_connected = true;
  // Of a paired box (peer is set), or of any other target (peer is empty).
  std::string peer, pool, lun_name;
  uint64_t size_bytes = 0;  // as asked for at creation; 0: an existing LUN
  uint32_t block_size = 512;
  bool thick = false;
  std::string target_iqn;
  uint16_t lun_number = 0;
  std::vector<PortalRecord> portals;
  std::optional<StoredChap> chap, mutual;
  std::string isid;  // twelve hexadecimal digits; never changes
  DiskChoices choices;
  std::optional<DiskIdentity> identity;
  std::optional<BlockGeometry> geometry;
};

// What a peer has still to be told of a LUN that is no longer used here. Kept until the peer knows.
struct FarewellRecord {
  enum class Ending { let_go, deleted };

  std::string peer;
  std::string lun;  // its NAA where it is known, so that no other LUN of that name is meant
  std::string lun_name;
  std::string request_id;  // not empty: only the LUN that this creation made
  Ending ending = Ending::let_go;
  std::string since;       // RFC 3339
  std::string last_error;  // of this run of the daemon; not saved
};

class HostState {
 public:
  static constexpr int version = 1;

  // Loads the file of the directory, or begins with an empty state. Damaged or newer: an error, and
  // the file stays.
  static Result<HostState> load(const std::string& state_dir);
  Status save() const;
  // A change that cannot be saved did not happen. References into the state are no longer valid
  // after an error.
  Status change(const std::function<void(HostState&)>& edit);

  std::string initiator_iqn;  // made once
  std::map<std::string, PeerRecord> peers;
  std::map<std::string, DiskRecord> disks;
  std::map<std::string, FarewellRecord> farewells;  // by the UUID of the disk that was

 private:
  explicit HostState(config::StateFile file) : file_(std::move(file)) {}
  config::StateFile file_;
};

std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view digits);

}  // namespace vjbod::initiator
