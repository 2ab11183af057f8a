// SPDX-License-Identifier: Apache-2.0
// The delay, error and trace filters, on memory and virtual time.
#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "target/backstore/errc.h"
#include "target/backstore/factory.h"

namespace vjbod::backstore {
namespace {

using namespace std::chrono_literals;

class Filters : public ::testing::Test, private OpOwner {
 protected:
  void open(std::vector<FilterConfig> filters) {
    auto opened = open_backstore(
        {.kind = BackstoreKind::memory, .size_bytes = 1 << 20, .filters = std::move(filters)});
    ASSERT_TRUE(opened) << opened.error().text;
    backstore_ = std::move(*opened);
    controls_ = filter_controls(*backstore_);
    queue_ = std::move(*backstore_->open_queue(reactor_));
  }
  void submit(Op& op, OpKind kind, uint64_t block = 0, std::byte value = {}) {
    op.kind = kind;
    op.owner = this;
    op.offset_bytes = block * 512;
    op.length_bytes = kind == OpKind::flush ? 0 : 512;
    buffers_.push_back(std::make_unique<std::array<std::byte, 512>>());
    buffers_.back()->fill(value);
    if (kind == OpKind::read || kind == OpKind::write) op.data = *buffers_.back();
    queue_->submit(op);
    reactor_.run_until_idle();
  }
  // The errno with which it ended, or -1 if it did not.
  int result(const Op& op) {
    for (const auto& [done, error] : done_)
      if (done == &op) return error;
    return -1;
  }
  int run(OpKind kind, uint64_t block = 0, std::byte value = {}) {
    Op op;
    submit(op, kind, block, value);
    int error = result(op);
    done_.clear();
    return error;
  }
  std::byte first_byte(uint64_t block) {
    EXPECT_EQ(run(OpKind::read, block), 0);
    return buffers_.back()->front();
  }
  static OpMatch blocks(OpKinds kinds, uint64_t first, uint64_t count) {
    return {.kinds = kinds, .offset_bytes = first * 512, .length_bytes = count * 512};
  }

  ManualReactor reactor_;
  std::shared_ptr<Backstore> backstore_;
  FilterControls controls_;
  std::unique_ptr<BackstoreQueue> queue_;
  std::vector<std::pair<Op*, int>> done_;

 private:
  void on_op_done(Op& op, std::error_code error) override {
    done_.emplace_back(&op, error.value());
  }
  std::vector<std::unique_ptr<std::array<std::byte, 512>>> buffers_;
};

TEST_F(Filters, AreFoundByTheirKind) {
  open({{.kind = FilterKind::delay}, {.kind = FilterKind::trace}});
  EXPECT_TRUE(controls_.delay);
  EXPECT_FALSE(controls_.error);
  EXPECT_TRUE(controls_.trace);
}

TEST_F(Filters, HoldAWriteForItsTimeAndOnlyThenWriteIt) {
  open({{.kind = FilterKind::delay}});
  controls_.delay->add({.match = blocks({OpKind::write}, 8, 8), .delay = 5s});
  Op write;
  submit(write, OpKind::write, 8, std::byte{1});
  EXPECT_EQ(controls_.delay->held(), 1u);
  EXPECT_EQ(run(OpKind::write, 7, std::byte{2}), 0);  // beside the range
  EXPECT_EQ(run(OpKind::write, 16, std::byte{2}), 0);

  reactor_.advance(4999ms);
  EXPECT_EQ(result(write), -1);
  EXPECT_EQ(first_byte(8), std::byte{0});

  reactor_.advance(1ms);
  EXPECT_EQ(result(write), 0);
  EXPECT_EQ(first_byte(8), std::byte{1});
  EXPECT_EQ(controls_.delay->held(), 0u);
}

TEST_F(Filters, HoldOpsUntilTheirRuleIsRemoved) {
  open({{.kind = FilterKind::delay}});
  auto writes = controls_.delay->add({.match = {.kinds = {OpKind::write}}});
  auto flushes = controls_.delay->add({.match = {.kinds = {OpKind::flush}}});
  Op first, second, flush;
  submit(first, OpKind::write, 0, std::byte{1});
  submit(second, OpKind::write, 0, std::byte{2});
  submit(flush, OpKind::flush);
  reactor_.advance(24h);
  EXPECT_EQ(controls_.delay->held(), 3u);

  EXPECT_TRUE(controls_.delay->remove(writes));
  reactor_.run_until_idle();
  EXPECT_EQ(result(first), 0);
  EXPECT_EQ(result(second), 0);
  EXPECT_EQ(result(flush), -1);
  EXPECT_EQ(first_byte(0), std::byte{2});

  EXPECT_FALSE(controls_.delay->remove(writes));
  EXPECT_EQ(controls_.delay->rules().size(), 1u);
  EXPECT_TRUE(controls_.delay->rules().contains(flushes));
  controls_.delay->clear();
  reactor_.run_until_idle();
  EXPECT_EQ(result(flush), 0);
}

TEST_F(Filters, FailAnOpOnceWithoutTouchingTheMedium) {
  open({{.kind = FilterKind::error,
         .errors = {{.match = blocks({OpKind::write}, 4, 1), .error_number = EIO, .times = 1}}}});
  EXPECT_EQ(run(OpKind::write, 4, std::byte{1}), EIO);
  EXPECT_EQ(first_byte(4), std::byte{0});
  EXPECT_EQ(run(OpKind::write, 4, std::byte{1}), 0);
  EXPECT_EQ(first_byte(4), std::byte{1});
  EXPECT_EQ(controls_.error->failed_ops(), 1u);
  EXPECT_TRUE(controls_.error->rules().empty());
}

TEST_F(Filters, FailFlushesUntilTheRuleIsRemoved) {
  open({{.kind = FilterKind::error}});
  auto rule = controls_.error->add({.match = {.kinds = {OpKind::flush}}, .error_number = ENOSPC});
  EXPECT_EQ(run(OpKind::flush), ENOSPC);
  EXPECT_EQ(run(OpKind::flush), ENOSPC);
  EXPECT_EQ(run(OpKind::write), 0);
  EXPECT_TRUE(controls_.error->remove(rule));
  EXPECT_EQ(run(OpKind::flush), 0);
}

TEST_F(Filters, FailWhatOverlapsTheRangeByOneBlock) {
  open({{.kind = FilterKind::error}});
  controls_.error->add({.match = blocks({OpKind::unmap}, 10, 2)});
  Op op;
  op.kind = OpKind::unmap;
  auto hits = [&](uint64_t first, uint64_t count) {
    op.offset_bytes = first * 512;
    op.length_bytes = count * 512;
    return controls_.error->rules().begin()->second.match.matches(op);
  };
  EXPECT_FALSE(hits(8, 2));
  EXPECT_TRUE(hits(8, 3));
  EXPECT_TRUE(hits(11, 100));
  EXPECT_FALSE(hits(12, 1));
  EXPECT_TRUE(OpMatch{}.matches(op));
}

TEST_F(Filters, RememberTheLastOpsAndHowTheyEnded) {
  open({{.kind = FilterKind::error,
         .errors = {{.match = blocks({OpKind::write}, 3, 1), .error_number = EIO}}},
        {.kind = FilterKind::trace, .trace_entries = 2}});
  run(OpKind::read, 1);
  run(OpKind::write, 2);
  run(OpKind::write, 3);
  auto entries = controls_.trace->entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(text_of(entries[0]), "#2 write 1024+512 0 us ok");
  EXPECT_EQ(text_of(entries[1]), "#3 write 1536+512 0 us Input/output error");
  EXPECT_EQ(controls_.trace->finished_ops(), 3u);
}

struct BadConfig {
  const char* part_of_reason;
  BackstoreConfig config;
};

TEST(ValidateConfig, NamesTheFieldThatIsWrong) {
  BackstoreConfig memory{.kind = BackstoreKind::memory, .size_bytes = 1 << 20};
  ASSERT_TRUE(validate_config(memory));
  std::vector<BadConfig> rows;
  auto add = [&](const char* reason, auto change) {
    rows.push_back({reason, memory});
    change(rows.back().config);
  };
  add("block_bytes", [](auto& c) { c.block_bytes = 1024; });
  add("size_bytes", [](auto& c) { c.size_bytes = 1000; });
  add("size_bytes", [](auto& c) { c.size_bytes = uint64_t{1} << 63; });
  add("size_bytes", [](auto& c) { c.size_bytes = 0; });
  add("path", [](auto& c) { c.path = "/x"; });
  add("path", [](auto& c) { c.kind = BackstoreKind::file; });
  add("path", [](auto& c) {
    c.kind = BackstoreKind::block;
    c.path = "relative";
  });
  add("thick", [](auto& c) { c.thick = true; });
  add("cache", [](auto& c) { c.cache = CacheMode::direct; });
  add("twice", [](auto& c) {
    c.filters = {{.kind = FilterKind::trace}, {.kind = FilterKind::trace}};
  });
  add("trace_entries", [](auto& c) {
    c.filters = {{.kind = FilterKind::trace, .trace_entries = trace_entries_max + 1}};
  });
  add("errno",
      [](auto& c) { c.filters = {{.kind = FilterKind::error, .errors = {{.error_number = 0}}}}; });
  add("delay",
      [](auto& c) { c.filters = {{.kind = FilterKind::delay, .delays = {{.delay = -1s}}}}; });
  add("delay rules", [](auto& c) { c.filters = {{.kind = FilterKind::error, .delays = {{}}}}; });
  for (const BadConfig& row : rows) {
    Status valid = validate_config(row.config);
    ASSERT_FALSE(valid) << row.part_of_reason;
    EXPECT_EQ(valid.error().code, Errc::bad_config);
    EXPECT_NE(valid.error().text.find(row.part_of_reason), std::string::npos) << valid.error().text;
    EXPECT_FALSE(open_backstore(row.config));
  }
}

TEST(ValidateConfig, ReadsTheNamesItWrites) {
  EXPECT_EQ(*backstore_kind_from_name("block"), BackstoreKind::block);
  EXPECT_EQ(*cache_mode_from_name("direct"), CacheMode::direct);
  EXPECT_EQ(*filter_kind_from_name("delay"), FilterKind::delay);
  EXPECT_EQ(*op_kind_from_name("write_zeroes"), OpKind::write_zeroes);
  EXPECT_NE(backstore_kind_from_name("rbd").error().text.find("file, block, memory"),
            std::string::npos);
}

}  // namespace
}  // namespace vjbod::backstore
