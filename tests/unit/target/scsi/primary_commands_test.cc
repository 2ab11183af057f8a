// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/cache_id_page.h"
#include "common/scsi/inquiry.h"
#include "common/scsi/mode_page.h"
#include "common/scsi/report_luns.h"
#include "target/scsi/limits.h"
#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

class PrimaryCommands : public NexusFixture {
 protected:
  std::vector<std::byte> page(unsigned code, uint16_t allocation_length = 255) {
    return run_read(Inquiry{.vital_product_data = true,
                            .page_code = static_cast<uint8_t>(code),
                            .allocation_length = allocation_length},
                    allocation_length)
        .data_in;
  }
  ModeData mode(ModeSense sense) {
    sense.allocation_length = 192;
    const TestTask& task = run_read(sense, 192);
    EXPECT_EQ(task.ending(), "GOOD");
    return parse_mode_data(task.data_in, sense.size).value();
  }
};

// --- INQUIRY ---

TEST_F(PrimaryCommands, InquiryTellsAVirtualDiskOfSpc4) {
  const auto inquiry =
      parse_standard_inquiry(run_read(Inquiry{.allocation_length = 96}, 96).data_in).value();
  EXPECT_EQ(inquiry.vendor, "VJBOD");
  EXPECT_EQ(inquiry.product, "Virtual Disk");
  EXPECT_EQ(inquiry.version, 6);
  EXPECT_EQ(inquiry.peripheral, (Peripheral{0, 0}));
  EXPECT_FALSE(inquiry.removable);
}

TEST_F(PrimaryCommands, InquiryIsCutToTheAllocationLength) {
  for (const unsigned length : {0U, 5U, 36U, 96U, 255U}) {
    const TestTask& task =
        run_read(Inquiry{.allocation_length = static_cast<uint16_t>(length)}, 255);
    const size_t size = std::min<size_t>(length, 96);
    EXPECT_EQ(task.ending(), "GOOD");
    EXPECT_EQ(task.data_in.size(), size);
    EXPECT_EQ(task.outcome->actual_data_bytes, size);
  }
}

TEST_F(PrimaryCommands, InquirySendsNoMoreThanTheInitiatorExpects) {
  const TestTask& task = run_read(Inquiry{.allocation_length = 96}, 10);
  EXPECT_EQ(task.data_in.size(), 10U);
  EXPECT_EQ(task.outcome->actual_data_bytes, 96U);
}

TEST_F(PrimaryCommands, APageCodeWithoutVitalProductDataIsAWrongField) {
  const TestTask& task = run_read(Inquiry{.page_code = 1, .allocation_length = 96}, 96);
  EXPECT_EQ(task.ending(), "05/24/00");
  EXPECT_EQ(task.sense().field->byte, 2);
}

TEST_F(PrimaryCommands, EveryPageInTheListIsThereAndNoOther) {
  const auto pages = parse_supported_pages(page(0x00)).value();
  EXPECT_EQ(pages, (std::vector<uint8_t>{0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2, 0xc0}));
  for (unsigned code = 0; code < 256; ++code) {
    const bool listed = std::count(pages.begin(), pages.end(), code) != 0;
    const TestTask& task = run_read(Inquiry{.vital_product_data = true,
                                            .page_code = static_cast<uint8_t>(code),
                                            .allocation_length = 255},
                                    255);
    EXPECT_EQ(task.ending(), listed ? "GOOD" : "05/24/00") << code;
  }
}

TEST_F(PrimaryCommands, ThePageOfTheCacheIdIsThereWhereThereIsOne) {
  EXPECT_EQ(parse_cache_id(page(0xc0)), unit->cache_id());
}

TEST_F(PrimaryCommands, TheIdentityComesFromTheUuid) {
  EXPECT_EQ(parse_unit_serial_number(page(0x80)).value(), "a0a1a2a3a4a5a6a7");
  const auto designators = parse_device_identification(page(0x83)).value();
  EXPECT_EQ(naa_of(designators), "naa.38a9aaabacadaeaf");
  EXPECT_EQ(unit->naa(), 0x38a9aaabacadaeafU);
}

TEST_F(PrimaryCommands, TheBlockLimitsAreThoseThatAreEnforced) {
  const auto limits = parse_block_limits(page(0xb0)).value();
  EXPECT_EQ(limits.maximum_transfer_blocks, transfer_blocks_max);
  EXPECT_EQ(limits.maximum_write_same_blocks, write_same_bytes_max / 512);
  EXPECT_EQ(limits.maximum_unmap_blocks, unmap_blocks_max);
  EXPECT_EQ(limits.maximum_unmap_descriptors, unmap_descriptors_max);
  EXPECT_TRUE(limits.write_same_no_zero);
  EXPECT_EQ(limits.optimal_unmap_granularity_blocks, 8U);
}

TEST_F(PrimaryCommands, ABackstoreThatCannotUnmapIsNotSaidToBeThin) {
  store->capabilities_.unmap = false;
  open();
  EXPECT_EQ(parse_logical_block_provisioning(page(0xb2)).value(), LogicalBlockProvisioning{});
  EXPECT_EQ(parse_block_limits(page(0xb0))->maximum_unmap_blocks, 0U);
}

// --- a LUN that is not there ---

TEST_F(PrimaryCommands, NothingIsAtALunThatIsNotMapped) {
  const auto inquiry =
      parse_standard_inquiry(run_read(Inquiry{.allocation_length = 96}, 96, 7).data_in).value();
  EXPECT_EQ(inquiry.peripheral, (Peripheral{3, 0x1f}));
  EXPECT_EQ(run(TestUnitReady{}, 7).ending(), "05/25/00");
  EXPECT_EQ(run_read(Read{.blocks = 1}, 512, 7).ending(), "05/25/00");
  EXPECT_EQ(run_read(ReportLuns{.allocation_length = 16}, 16, 7).ending(), "05/25/00");
  EXPECT_EQ(submit(raw({0x16}, 7)).ending(), "05/25/00");
  const TestTask& sense = run_read(RequestSense{}, 252, 7);
  EXPECT_EQ(sense.ending(), "GOOD");
  EXPECT_EQ(parse_sense(sense.data_in)->additional, asc::logical_unit_not_supported);
}

TEST_F(PrimaryCommands, Lun0ListsTheLunsAlsoWhenItIsNotMapped) {
  ASSERT_TRUE(nexus->set_luns({{300, unit, false}}).has_value());
  const TestTask& task = run_read(ReportLuns{.allocation_length = 64}, 64, 0);
  EXPECT_EQ(parse_report_luns(task.data_in)->luns, (std::vector{encode_lun(300)}));
}

// --- REPORT LUNS, REQUEST SENSE, MODE SENSE ---

TEST_F(PrimaryCommands, ReportLunsChecksItsFields) {
  EXPECT_EQ(run_read(ReportLuns{.allocation_length = 15}, 15).ending(), "05/24/00");
  EXPECT_EQ(run_read(ReportLuns{.select_report = 3, .allocation_length = 16}, 16).ending(),
            "05/24/00");
  const TestTask& well_known =
      run_read(ReportLuns{.select_report = 1, .allocation_length = 16}, 16);
  EXPECT_TRUE(parse_report_luns(well_known.data_in)->luns.empty());
}

TEST_F(PrimaryCommands, ReportLunsListsTheMostThatCanBeMapped) {
  std::vector<LunMapping> luns;
  for (uint16_t i = 0; i < mapped_luns_max; ++i) luns.push_back({i, make_unit(store), false});
  ASSERT_TRUE(nexus->set_luns(luns).has_value());
  const TestTask& task = run_read(ReportLuns{.allocation_length = 4096}, 4096);
  EXPECT_EQ(parse_report_luns(task.data_in)->luns.size(), mapped_luns_max);
  luns.push_back({999, make_unit(store), false});
  EXPECT_FALSE(nexus->set_luns(luns).has_value());
}

TEST_F(PrimaryCommands, RequestSenseTellsAPendingAttentionOnceInTheFormatAskedFor) {
  ASSERT_TRUE(unit->resize(2 * blocks * 512).has_value());
  reactor.run_until_idle();
  const TestTask& first = run_read(RequestSense{.descriptor_format = true}, 252);
  EXPECT_EQ(std::to_integer<unsigned>(first.data_in[0]), 0x72U);
  EXPECT_EQ(parse_sense(first.data_in)->additional, asc::capacity_changed);
  const TestTask& second = run_read(RequestSense{}, 252);
  EXPECT_EQ(std::to_integer<unsigned>(second.data_in[0]), 0x70U);
  EXPECT_EQ(parse_sense(second.data_in).value(), Sense{});
}

TEST_F(PrimaryCommands, ModeSenseTellsTheCacheAndTheTaskSet) {
  const ModeData data = mode({.page_code = mode_page_all});
  EXPECT_FALSE(data.write_protected);
  EXPECT_TRUE(data.dpo_and_fua);
  EXPECT_TRUE(data.caching->write_cache_enabled);
  EXPECT_TRUE(data.control->task_set_per_nexus);
  EXPECT_EQ(data.block, (BlockDescriptor{blocks, 512}));
}

TEST_F(PrimaryCommands, ModeSenseIsTrueToTheBackstore) {
  store->capabilities_.volatile_cache = false;
  store->capabilities_.read_only = true;
  open();
  const ModeData data = mode({.size = CdbSize::ten,
                              .disable_block_descriptors = true,
                              .page_code = mode_page_caching,
                              .subpage_code = mode_subpage_all});
  EXPECT_TRUE(data.write_protected);
  EXPECT_FALSE(data.caching->write_cache_enabled);
  EXPECT_FALSE(data.control.has_value());
  EXPECT_FALSE(data.block.has_value());
}

TEST_F(PrimaryCommands, ModeSenseRefusesWhatItDoesNotHave) {
  const auto ending = [&](ModeSense sense) {
    sense.allocation_length = 192;
    return run_read(sense, 192).ending();
  };
  EXPECT_EQ(ending({.page_control = 3, .page_code = mode_page_all}), "05/39/00");
  EXPECT_EQ(ending({.page_code = 0x1c}), "05/24/00");
  EXPECT_EQ(ending({.page_code = mode_page_control, .subpage_code = 1}), "05/24/00");
}

// --- what no command may ask for ---

TEST_F(PrimaryCommands, AnUnknownCommandSaysSo) {
  EXPECT_EQ(submit(raw({0x16})).ending(), "05/20/00");
  EXPECT_EQ(submit(raw({0xc0})).ending(), "05/20/00");
  EXPECT_EQ(submit(raw({0x89})).ending(), "05/20/00");
}

TEST_F(PrimaryCommands, AnUnknownServiceActionIsAWrongField) {
  const TestTask& task = submit(raw({0x9e, 0x12}));
  EXPECT_EQ(task.ending(), "05/24/00");
  EXPECT_EQ(task.sense().field, (FieldPointer{.in_cdb = true, .byte = 1, .bit = 4}));
}

TEST_F(PrimaryCommands, TheNacaBitIsRefused) {
  EXPECT_EQ(submit(raw({0x00, 0, 0, 0, 0, 0x04})).ending(), "05/24/00");
  EXPECT_EQ(submit(raw({0x00, 0, 0, 0, 0, 0xfb})).ending(), "GOOD");
}

TEST_F(PrimaryCommands, TheAcaAttributeIsRefused) {
  TestTask& task = make(TestUnitReady{});
  task.attribute = TaskAttribute::aca;
  EXPECT_EQ(submit(task).ending(), "05/49/00");
}

}  // namespace
}  // namespace vjbod::scsi::test
