// SPDX-License-Identifier: Apache-2.0
// Disks and events as people see them. Pure.
#pragma once

#include <string>
#include <vector>

#include "vjbod/v1/common.pb.h"
#include "vjbod/v1/host.pb.h"

namespace vjbod::cli {

std::vector<std::string> disk_columns();
std::vector<std::string> disk_row(const v1::Disk& disk);
// Everything, one "key: value" per line, then the last state changes.
std::string disk_details(const v1::Disk& disk);
std::vector<std::string> event_row(const v1::Event& event);

// The states a disk can have: the tokens of `vjbod list`.
std::vector<std::string> disk_states();
// For `vjbod check`. 0: connected as wanted; 1: connected, not as wanted; 2: down.
int disk_health(const v1::Disk& disk);

}  // namespace vjbod::cli
