// SPDX-License-Identifier: Apache-2.0
// Both login machines. The input is a row of requests or responses: a byte of flags, a byte of
// variations, two bytes of length, data. No input may crash them, make them run on for ever, or
// bring a login to its end without the secret.
#include "common/base/check.h"
#include "common/base/random.h"
#include "initiator/session/login_machine.h"
#include "target/iscsi/login_machine.h"

using namespace vjbod;

namespace {

struct Policy final : target::LoginPolicy {
  explicit Policy(bool with_chap) : chap(with_chap) {}
  target::LoginDecision decide(const target::LoginIdentity&) const override {
    target::LoginDecision decision;
    decision.access = target::LoginDecision::Access::allowed;
    if (chap) {
      decision.chap.emplace();
      decision.chap->initiator = {"host", iscsi::Secret("secret of the host")};
      decision.chap->mutual = iscsi::ChapCredentials{"box", iscsi::Secret("secret of the box")};
    }
    return decision;
  }
  bool chap;
};

// One PDU off the input. Header is LoginRequest or LoginResponse: they share these fields.
template <typename Header>
bool next(ByteReader& in, Header& header, ConstBytes& data) {
  if (in.remaining() == 0) return false;
  const uint8_t flags = in.u8();
  const uint8_t variations = in.u8();
  header.transit = (flags & 0x80) != 0;
  header.continues = (flags & 0x40) != 0;
  header.current_stage = static_cast<iscsi::Stage>(flags >> 2 & 3);
  header.next_stage = static_cast<iscsi::Stage>(flags & 3);
  header.tsih = variations & 0x03;
  header.isid[5] = static_cast<std::byte>(variations >> 2 & 0x01);
  header.version_max = variations >> 3 & 0x01;
  const size_t length = std::min<size_t>(in.u16(), in.remaining());
  data = in.bytes(length);
  return true;
}

void run_target(ByteReader in, bool chap) {
  const Policy policy(chap);
  target::LoginSettings settings;
  settings.fill_random = [random = Random(1)](Bytes bytes) mutable { random.fill(bytes); };
  target::LoginMachine machine(std::move(settings), policy);
  iscsi::LoginRequest request;
  ConstBytes data;
  size_t requests = 0;
  while (next(in, request, data)) {
    target::LoginStep step = machine.on_request(request, data);
    VJBOD_CHECK(++requests <= target::login_requests_max + 1);
    if (step.state == target::LoginState::admission_pending) {
      VJBOD_CHECK(!step.response);
      VJBOD_CHECK(!chap, "a login passed without the secret");
      step = machine.admit(1);
      VJBOD_CHECK(step.state == target::LoginState::done);
    }
    VJBOD_CHECK(step.response && step.data.size() <= iscsi::login_segment_bytes_max);
    VJBOD_CHECK((step.state == target::LoginState::failed) == (step.response->status_class != 0));
    if (step.state != target::LoginState::in_progress) return;
  }
}

void run_initiator(ByteReader in, bool mutual) {
  initiator::LoginSettings settings;
  settings.initiator_name = "iqn.2024-01.com.example:host";
  settings.target_name = "iqn.2024-01.com.example:box";
  if (mutual) {
    settings.chap = iscsi::ChapCredentials{"host", iscsi::Secret("secret of the host")};
    settings.mutual = iscsi::ChapCredentials{"box", iscsi::Secret("secret of the box")};
  }
  settings.fill_random = [random = Random(1)](Bytes bytes) mutable { random.fill(bytes); };
  initiator::LoginMachine machine(std::move(settings));
  machine.start();
  iscsi::LoginResponse response;
  ConstBytes data;
  size_t responses = 0;
  while (next(in, response, data)) {
    const initiator::LoginStep step = machine.on_response(response, data);
    VJBOD_CHECK(++responses <= initiator::login_responses_max + 1);
    VJBOD_CHECK(step.data.size() <= iscsi::login_segment_bytes_max);
    VJBOD_CHECK(step.request.has_value() == (step.state == initiator::LoginState::in_progress));
    VJBOD_CHECK(!mutual || step.state != initiator::LoginState::done,
                "a target passed without the secret");
    if (step.state != initiator::LoginState::in_progress) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in(ConstBytes(reinterpret_cast<const std::byte*>(data), size));
  const uint8_t kind = in.u8();
  if ((kind & 1) != 0) {
    run_target(in, (kind & 2) != 0);
  } else {
    run_initiator(in, (kind & 2) != 0);
  }
  return 0;
}
