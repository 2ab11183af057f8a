// SPDX-License-Identifier: Apache-2.0
#include "common/net/rdma_ports.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/net/interfaces.h"
#include "tests/support/temp_dir.h"

namespace vjbod::net {
namespace {

constexpr char link_local_gid[] = "fe80:0000:0000:0000:5054:00ff:fe00:0001";
constexpr char gid_of_10_0_0_1[] = "0000:0000:0000:0000:0000:ffff:0a00:0001";
constexpr char gid_of_10_0_5_1[] = "0000:0000:0000:0000:0000:ffff:0a00:0501";
constexpr char unused_gid[] = "0000:0000:0000:0000:0000:0000:0000:0000";

// A folder that looks like /sys.
class RdmaPortsTest : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& line) {
    const std::filesystem::path full = std::filesystem::path(sysfs()) / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << line << '\n';
  }
  void port(const std::string& device, uint32_t number, const std::string& state = "4: ACTIVE",
            const std::string& layer = "Ethernet", const std::string& type = "1: CA") {
    file("class/infiniband/" + device + "/node_type", type);
    file(folder(device, number) + "state", state);
    file(folder(device, number) + "link_layer", layer);
  }
  void gid(const std::string& device, uint32_t index, const std::string& gid,
           const std::string& interface, const std::string& type = "RoCE v2", uint32_t number = 1) {
    const std::string root = folder(device, number), name = std::to_string(index);
    file(root + "gids/" + name, gid);
    if (gid == unused_gid) return;
    file(root + "gid_attrs/ndevs/" + name, interface);
    file(root + "gid_attrs/types/" + name, type);
  }
  void lower(const std::string& interface, const std::string& below) {
    file("class/net/" + interface + "/lower_" + below + "/mtu", "1500");
  }
  static std::string folder(const std::string& device, uint32_t number) {
    return "class/infiniband/" + device + "/ports/" + std::to_string(number) + "/";
  }
  std::string sysfs() const { return dir_.path(); }
  Interface found(const std::string& name, const std::vector<std::string>& addresses) const {
    std::vector<Interface> interfaces(1);
    interfaces[0].name = name;
    for (const std::string& address : addresses)
      interfaces[0].addresses.push_back({address, 24, false, {}});
    add_rdma(sysfs(), interfaces);
    return interfaces[0];
  }

  test::TempDir dir_;
};

TEST_F(RdmaPortsTest, ABoxWithoutRdmaHasNone) {
  EXPECT_TRUE(read_rdma_ports(sysfs()).empty());
  EXPECT_FALSE(found("eth0", {"10.0.0.1"}).rdma);
}

TEST_F(RdmaPortsTest, SoftRoceIsFoundByItsAddressesAndSaysItsVersion) {
  port("rxe0", 1);
  file("class/infiniband/rxe0/parent", "eth0");
  gid("rxe0", 0, link_local_gid, "eth0");
  gid("rxe0", 1, gid_of_10_0_0_1, "eth0");
  gid("rxe0", 2, unused_gid, "");

  const auto ports = read_rdma_ports(sysfs());
  const Interface eth0 = found("eth0", {"10.0.0.1", "10.0.9.1", "fe80::5054:ff:fe00:1"});

  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].gids.size(), 2u);
  ASSERT_TRUE(eth0.rdma);
  EXPECT_EQ(eth0.rdma->device, "rxe0");
  EXPECT_EQ(eth0.rdma->port, 1u);
  EXPECT_EQ(eth0.rdma->link_layer, "Ethernet");
  EXPECT_TRUE(eth0.rdma->link_up);
  EXPECT_EQ(eth0.addresses[0].rdma_type, "RoCE v2");
  EXPECT_EQ(eth0.addresses[1].rdma_type, "");
  EXPECT_EQ(eth0.addresses[2].rdma_type, "RoCE v2");
  EXPECT_FALSE(found("eth1", {"10.0.0.1"}).rdma);
}

TEST_F(RdmaPortsTest, AnAddressWithBothVersionsUsesTheSecond) {
  port("mlx5_0", 1);
  gid("mlx5_0", 0, gid_of_10_0_0_1, "eth0", "IB/RoCE v1");
  EXPECT_EQ(found("eth0", {"10.0.0.1"}).addresses[0].rdma_type, "RoCE v1");

  gid("mlx5_0", 1, gid_of_10_0_0_1, "eth0", "RoCE v2");
  EXPECT_EQ(found("eth0", {"10.0.0.1"}).addresses[0].rdma_type, "RoCE v2");
}

TEST_F(RdmaPortsTest, APortWithoutALinkIsShownAsSuch) {
  port("mlx5_0", 1, "1: DOWN");
  file("class/infiniband/mlx5_0/device/net/eth0/mtu", "1500");

  const Interface eth0 = found("eth0", {"10.0.0.1"});

  ASSERT_TRUE(eth0.rdma);
  EXPECT_FALSE(eth0.rdma->link_up);
  EXPECT_EQ(eth0.rdma->link_state, "DOWN");
  EXPECT_EQ(eth0.addresses[0].rdma_type, "");
}

TEST_F(RdmaPortsTest, VlansBridgesAndBondsHaveTheAddressesThatTheKernelEnteredForThem) {
  port("mlx5_0", 1);
  gid("mlx5_0", 0, link_local_gid, "eth0");
  gid("mlx5_0", 1, gid_of_10_0_5_1, "eth0.5");
  lower("eth0.5", "eth0");
  lower("br0", "eth0.5");

  EXPECT_EQ(found("eth0.5", {"10.0.5.1"}).addresses[0].rdma_type, "RoCE v2");
  // The bridge stands on RDMA, but its own address is not in the table.
  const Interface bridge = found("br0", {"10.0.5.1"});
  ASSERT_TRUE(bridge.rdma);
  EXPECT_EQ(bridge.rdma->device, "mlx5_0");
  EXPECT_EQ(bridge.addresses[0].rdma_type, "");
}

TEST_F(RdmaPortsTest, ABondUsesThePortThatKnowsItsAddress) {
  port("mlx5_0", 1);
  port("mlx5_1", 1);
  gid("mlx5_0", 0, link_local_gid, "eth0");
  gid("mlx5_1", 0, link_local_gid, "eth1");
  gid("mlx5_1", 1, gid_of_10_0_0_1, "bond0");
  lower("bond0", "eth0");
  lower("bond0", "eth1");

  const Interface bond = found("bond0", {"10.0.0.1"});

  ASSERT_TRUE(bond.rdma);
  EXPECT_EQ(bond.rdma->device, "mlx5_1");
  EXPECT_EQ(bond.addresses[0].rdma_type, "RoCE v2");
}

TEST_F(RdmaPortsTest, InfinibandAndIwarpNeedNoEntryForTheAddress) {
  port("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
  gid("mlx5_0", 0, "fe80:0000:0000:0000:0002:c903:0000:0001", "", "IB/RoCE v1");
  file("class/infiniband/mlx5_0/device/net/ib0/mtu", "2044");
  port("siw0", 1, "4: ACTIVE", "Ethernet", "4: RNIC");
  gid("siw0", 0, "0200:0000:0000:0000:0000:0000:0000:0000", "eth7", "IB/RoCE v1");
  file("class/infiniband/siw0/parent", "eth7");
  lower("bond1", "ib0");

  EXPECT_EQ(found("ib0", {"10.0.0.1"}).addresses[0].rdma_type, "InfiniBand");
  EXPECT_EQ(found("ib0", {"10.0.0.1"}).rdma->link_layer, "InfiniBand");
  EXPECT_EQ(found("bond1", {"10.0.0.1"}).addresses[0].rdma_type, "InfiniBand");
  EXPECT_EQ(found("eth7", {"10.0.0.1"}).addresses[0].rdma_type, "iWARP");
}

TEST_F(RdmaPortsTest, PortsOfOneFunctionAreToldApartByTheInterfacesNumber) {
  port("mlx4_0", 1, "1: DOWN", "InfiniBand");
  port("mlx4_0", 2, "4: ACTIVE", "InfiniBand");
  for (const char* interface : {"ib0", "ib1"})
    file(std::string("class/infiniband/mlx4_0/device/net/") + interface + "/mtu", "2044");
  file("class/net/ib0/dev_port", "0");
  file("class/net/ib1/dev_port", "1");

  EXPECT_EQ(found("ib0", {"10.0.0.1"}).rdma->port, 1u);
  EXPECT_EQ(found("ib1", {"10.0.0.1"}).rdma->port, 2u);
}

TEST_F(RdmaPortsTest, GarbageInTheTreeIsNoPortAndNoAddress) {
  port("odd0", 1, "");
  file("class/infiniband/odd0/ports/zero/state", "4: ACTIVE");
  gid("odd0", 0, "not a gid", "eth0");
  lower("eth0", "eth1");
  lower("eth1", "eth0");  // a loop ends

  const auto ports = read_rdma_ports(sysfs());

  ASSERT_EQ(ports.size(), 1u);
  EXPECT_TRUE(ports[0].gids.empty());
  EXPECT_FALSE(ports[0].link_up());
  EXPECT_FALSE(found("eth0", {"10.0.0.1"}).rdma);
}

}  // namespace
}  // namespace vjbod::net
