// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "common/base/check.h"
#include "common/scsi/lun.h"
#include "initiator/disk/disk_impl.h"

namespace vjbod::initiator {

namespace {

SupervisorConfig supervisor_config(DiskConfig& config) {
  SupervisorConfig out;
  out.name = config.name;
  out.session = std::move(config.session);
  out.paths = std::move(config.paths);
  out.commands_max = config.commands_max;
  out.known = config.identity.has_value();
  return out;
}

std::string text_of(const iscsi::Isid& isid) {
  std::string text;
  for (std::byte b : isid) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

std::string text_of(const iscsi::NegotiatedParameters& p) {
  return fmt::format(
      "HeaderDigest={} DataDigest={} ImmediateData={} InitialR2T={} MaxBurstLength={} "
      "FirstBurstLength={} MaxRecvDataSegmentLength={}/{}",
      p.header_digest ? "CRC32C" : "None", p.data_digest ? "CRC32C" : "None",
      p.immediate_data ? "Yes" : "No", p.initial_r2t ? "Yes" : "No", p.max_burst_length,
      p.first_burst_length, p.our_max_recv_data_segment_length,
      p.peer_max_recv_data_segment_length);
}

}  // namespace

Disk::Impl::Impl(Reactor& reactor, const Connectors& connectors, DiskConfig config,
                 DiskObserver& observer)
    : reactor_(reactor),
      observer_(observer),
      log_(config.name),
      name_(config.name),
      lun_(config.lun),
      lun_field_(scsi::encode_lun(config.lun)),
      policy_(config.policy),
      target_name_(config.session.target_name),
      isid_(config.session.isid),
      recovering_(config.recovering),
      identity_(config.identity),
      table_(config.commands_max),
      zeros_(static_cast<std::byte*>(std::calloc(1, zeros_bytes)), &std::free),
      unflushed_(std::move(config.unflushed)),
      shown_since_(reactor.now()),
      timer_(reactor, [this] { on_timer(); }),
      probe_(lun_field_, [this](Result<ProbeResult> result) { probe_done(std::move(result)); }),
      supervisor_(reactor, connectors, supervisor_config(config), *this) {
  VJBOD_CHECK(zeros_ != nullptr, "no memory");
  if (config.geometry && config.identity) {
    geometry_known_ = true;
    geometry_ = *config.geometry;
  }
  if (unflushed_.unflushed() > 0)
    log_.info(
        "{} acknowledged writes were not flushed when the daemon ended; if the target still "
        "has its cache, they are there",
        unflushed_.unflushed());
}

Disk::Impl::~Impl() {
  VJBOD_CHECK(supervisor_.at_rest() && table_.idle() && waiting_.empty() && answered_.empty(),
              "disk {} destroyed before it was detached", name_);
}

// --- a person's word ---

void Disk::Impl::connect() {
  if (detaching_) return;
  if (flush_error_ != 0) log_.warn("the error of an earlier flush is forgotten by request");
  flush_error_ = 0;
  switch (supervisor_.machine().goal()) {
    case SupervisorState::stopped:
    case SupervisorState::failed:
    case SupervisorState::stale: break;
    default: return;  // at it already
  }
  if (dead_) {
    log_.warn("writes that the target has lost are accepted as lost by request");
    unflushed_.forget_unflushed();
  }
  dead_ = false;
  taken_over_ = false;
  refused_ = false;
  ever_online_ = false;
  own_error_.reset();
  failing_ = false;
  lost_since_.reset();
  connection_lost();
  supervisor_.start();
}

void Disk::Impl::disconnect() {
  if (detaching_) return;
  connection_lost();
  supervisor_.stop();
}

void Disk::Impl::take_over(const Error& reason) {
  if (detaching_) return;
  taken_over_ = true;
  own_error_ = {reason, reactor_.now()};
  disconnect();
}

void Disk::Impl::refuse(const Error& reason) {
  if (detaching_) return;
  refused_ = true;
  own_error_ = {reason, reactor_.now()};
  log_.error("{}", reason.text);
  disconnect();
}

void Disk::Impl::reconnect() {
  if (detaching_) return;
  if (online_) planned_ = true;
  supervisor_.reconnect();
}

void Disk::Impl::use_only_interfaces(const std::vector<std::string>& usable) {
  if (!online_ || supervisor_.path() == nullptr) return;
  const std::string& bound = supervisor_.path()->endpoint.interface_name;
  if (bound.empty() || std::find(usable.begin(), usable.end(), bound) != usable.end()) return;
  log_.warn("interface {} is gone or has no carrier: going another way", bound);
  reconnect();
}

void Disk::Impl::forget_identity() {
  if (channel_ != nullptr) return;  // it is that LUN right now
  log_.warn("the identity of the LUN is forgotten by request; what waited for it fails");
  identity_.reset();
  unflushed_.forget_unflushed();
  unflushed_.set_cache_id("");
  drop_waiting_ = true;
  wake();
}

void Disk::Impl::detach(std::function<void()> done) {
  VJBOD_CHECK(!detaching_, "disk {} is detached twice", name_);
  detaching_ = true;
  detach_done_ = std::move(done);
  supervisor_.stop();
  wake();
}

void Disk::Impl::set_policy(const DiskPolicy& policy) {
  policy_ = policy;
  failing_ = false;  // judged anew by the new policy
  arm_timer();
  wake();
}

void Disk::Impl::set_session(SessionConfig session) {
  target_name_ = session.target_name;
  isid_ = session.isid;
  supervisor_.set_session(std::move(session));
}

// --- the connection ---

// Begins the count of the I/O timeout, once per loss.
void Disk::Impl::connection_lost() {
  if (!lost_since_) lost_since_ = reactor_.now();
  arm_timer();
  wake();
}

void Disk::Impl::on_probe(ScsiChannel& channel, uint64_t generation) {
  channel_ = &channel;
  generation_ = generation;
  online_ = false;  // nothing is issued before we know that it is still our LUN
  probe_deadline_ = reactor_.now() + probe_timeout;
  arm_timer();
  if (!probe_.running()) probe_.start(channel);
}

void Disk::Impl::probe_done(Result<ProbeResult> result) {
  probe_deadline_.reset();
  if (!result) {
    const std::error_code code = result.error().code;
    const bool no_disk = code == DiskErrc::not_a_disk || code == DiskErrc::not_usable;
    return no_disk ? supervisor_.no_such_disk(result.error())
                   : supervisor_.probe_failed(result.error());
  }
  if (identity_) {
    if (auto mismatch = identity_mismatch(*identity_, result->identity)) {
      log_.error("the LUN changed its identity: {}; nothing is written to it", *mismatch);
      return supervisor_.identity_changed(
          {make_error_code(DiskErrc::identity_mismatch),
           fmt::format("The LUN changed its identity: {}.", *mismatch)});
    }
  }
  // Also when it tells none any more: what cannot be known is not taken to be safe.
  const bool cache_lost =
      !unflushed_.cache_id().empty() && unflushed_.cache_id() != result->cache_id;
  if (cache_lost && unflushed_.unflushed() > 0) {
    // The record stays as it is until a person has accepted the loss, over restarts of the daemon.
    dead_ = true;
    const Error error{make_error_code(DiskErrc::writes_lost),
                      fmt::format("The target was restarted and has lost its cache while {} "
                                  "acknowledged writes were not flushed; they may be lost. Check "
                                  "what is on the disk, then accept it by `vjbod connect {}`.",
                                  unflushed_.unflushed(), name_)};
    log_.error("{}", error.text);
    return supervisor_.writes_lost(error);
  }
  adopt(*result);
  supervisor_.probe_passed();
}

void Disk::Impl::adopt(const ProbeResult& result) {
  unflushed_.set_cache_id(result.cache_id);
  vendor_ = result.vendor;
  product_ = result.product;
  revision_ = result.revision;
  features_ = result.features;
  const bool changed = !geometry_known_ || geometry_.size_bytes != result.geometry.size_bytes;
  if (changed && geometry_known_)
    log_.info("the LUN has grown from {} to {} bytes", geometry_.size_bytes,
              result.geometry.size_bytes);
  geometry_ = result.geometry;
  geometry_known_ = true;
  geometry_news_ = geometry_news_ || changed;
  if (!identity_ || *identity_ != result.identity) {
    if (result.identity.naa.empty() && result.identity.serial.empty())
      log_.warn("the LUN has no identifier: a replacement of the same size goes unnoticed");
    identity_ = result.identity;
    identity_news_ = true;
  }
}

void Disk::Impl::on_online() {
  if (std::exchange(probe_again_, false)) return supervisor_.probe_wanted();
  online_ = true;
  if (lost_since_ && ever_online_) ++reconnects_;
  ever_online_ = true;
  recovering_ = false;
  failing_ = false;
  planned_ = false;
  lost_since_.reset();
  paused_until_.reset();
  arm_timer();
  wake();
}

void Disk::Impl::on_window_open() {
  if (probe_.running()) probe_.on_window_open();
  wake();
}

void Disk::Impl::on_session_down(uint64_t generation, const Error& reason) {
  channel_ = nullptr;
  online_ = false;
  probe_.on_session_down();
  probe_deadline_.reset();
  paused_until_.reset();
  probe_again_ = false;
  const size_t replayed = table_.session_down(generation);
  log_.info("session {} is down, {} commands to be replayed, {} requests waiting: {}", generation,
            replayed, waiting_count_, reason.text);
  connection_lost();
}

// --- time ---

void Disk::Impl::arm_timer() {
  std::optional<TimePoint> next;
  const auto consider = [&next](std::optional<TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(paused_until_);
  consider(probe_deadline_);
  if (lost_since_ && !failing_) {
    if (policy_.on_loss == OnLoss::fail)
      consider(planned_ ? *lost_since_ + planned_reconnect_grace : *lost_since_);
    else if (policy_.io_timeout > Duration::zero())
      consider(*lost_since_ + policy_.io_timeout);
  }
  if (next)
    timer_.arm_at(*next);
  else
    timer_.cancel();
}

void Disk::Impl::on_timer() {
  const TimePoint now = reactor_.now();
  if (paused_until_ && now >= *paused_until_) paused_until_.reset();
  if (probe_deadline_ && now >= *probe_deadline_) {
    probe_deadline_.reset();
    supervisor_.probe_failed(
        {make_error_code(DiskErrc::probe_failed), "The LUN did not tell in time what it is."});
  }
  if (lost_since_ && !failing_) {
    const bool over =
        policy_.on_loss == OnLoss::fail
            ? !planned_ || now >= *lost_since_ + planned_reconnect_grace
            : policy_.io_timeout > Duration::zero() && now >= *lost_since_ + policy_.io_timeout;
    if (over) {
      failing_ = true;
      if (policy_.on_loss == OnLoss::queue) {
        own_error_ = {
            {make_error_code(DiskErrc::io_timeout),
             fmt::format(
                 "No connection for {} s: I/O fails until there is one.",
                 std::chrono::duration_cast<std::chrono::seconds>(policy_.io_timeout).count())},
            now};
        log_.error("{}", own_error_->first.text);
      }
    }
  }
  arm_timer();
  wake();
}

// --- what others see ---

DiskState Disk::Impl::display_state() const {
  if (detaching_) return DiskState::detaching;
  const SupervisorMachine& machine = supervisor_.machine();
  switch (machine.goal()) {
    case SupervisorState::stopped:
      return taken_over_ ? DiskState::taken_over
             : refused_  ? DiskState::failed
                         : DiskState::disconnected;
    case SupervisorState::failed: return DiskState::failed;
    case SupervisorState::stale: return DiskState::stale;
    case SupervisorState::online: return DiskState::connected;
    case SupervisorState::probing:
      if (machine.was_online()) return DiskState::connected;
      break;
    default: break;
  }
  if (ever_online_) return DiskState::reconnecting;
  return recovering_ ? DiskState::recovering : DiskState::connecting;
}

void Disk::Impl::notice_state() {
  const DiskState state = display_state();
  if (state == shown_state_) return;
  log_.info("{} -> {}", name_of(shown_state_), name_of(state));
  if (state == DiskState::failed || state == DiskState::stale)
    log_.error("the disk needs a person; what led to it:\n{}",
               supervisor_.machine().transitions().text());
  shown_state_ = state;
  shown_since_ = reactor_.now();
}

void Disk::Impl::finish_detach() {
  if (!detach_done_ || !supervisor_.at_rest() || !table_.idle() || !waiting_.empty() ||
      !answered_.empty())
    return;
  timer_.cancel();
  reactor_.post(std::exchange(detach_done_, nullptr));
}

DiskStatus Disk::Impl::status() const {
  const TimePoint now = reactor_.now();
  const SupervisorMachine& machine = supervisor_.machine();
  DiskStatus status;
  status.taken_at = now;
  status.state = display_state();
  status.state_age = status.state == shown_state_ ? now - shown_since_ : Duration::zero();
  if (supervisor_.path() != nullptr)
    status.portal = transport::text_of(supervisor_.path()->endpoint);
  if (const Session* session = supervisor_.session();
      session != nullptr && status.state == DiskState::connected) {
    status.connection = session->kind();
    status.local_address = session->local();
    status.session_parameters = text_of(session->parameters());
  }
  status.target_name = target_name_;
  status.isid = text_of(isid_);
  status.lun = lun_;
  status.attempt = machine.attempts();
  if (auto at = supervisor_.next_attempt_at())
    status.next_attempt_in = std::max(*at - now, Duration::zero());
  status.queued_ios = waiting_count_ + table_.queued();
  status.active_ios = table_.issued();
  if (lost_since_) status.lost_for = now - *lost_since_;
  status.io_timeout = policy_.io_timeout;
  status.on_loss = policy_.on_loss;
  status.reconnects = reconnects_;
  status.generation = supervisor_.generation();
  if (const auto& last = supervisor_.last_error())
    status.last_error = DiskError{last->error.code, last->error.text, now - last->at};
  if (own_error_ && (!status.last_error || now - own_error_->second <= status.last_error->age))
    status.last_error =
        DiskError{own_error_->first.code, own_error_->first.text, now - own_error_->second};
  if (const auto& failure = supervisor_.rdma_failure())
    status.rdma_failure = DiskError{failure->error.code, failure->error.text, now - failure->at};
  if (const auto until = machine.rdma_avoided_until(now)) status.rdma_tried_in = *until - now;
  status.geometry_known = geometry_known_;
  status.geometry = geometry_;
  status.identity = identity_;
  status.vendor = vendor_;
  status.product = product_;
  status.revision = revision_;
  status.unflushed_writes = unflushed_.unflushed() > 0;
  status.counters = counters_;
  status.transitions = machine.transitions().text();
  return status;
}

// --- Disk ---

Disk::Disk(Reactor& reactor, const Connectors& connectors, DiskConfig config,
           DiskObserver& observer)
    : impl_(std::make_unique<Impl>(reactor, connectors, std::move(config), observer)) {}
Disk::~Disk() = default;

void Disk::connect() {
  impl_->connect();
}
void Disk::forget_identity() {
  impl_->forget_identity();
}
void Disk::disconnect() {
  impl_->disconnect();
}
void Disk::reconnect() {
  impl_->reconnect();
}
void Disk::use_only_interfaces(const std::vector<std::string>& usable) {
  impl_->use_only_interfaces(usable);
}
void Disk::take_over(const Error& reason) {
  impl_->take_over(reason);
}
void Disk::refuse(const Error& reason) {
  impl_->refuse(reason);
}
void Disk::detach(std::function<void()> done) {
  impl_->detach(std::move(done));
}
void Disk::set_policy(const DiskPolicy& policy) {
  impl_->set_policy(policy);
}
void Disk::set_paths(std::vector<PathCandidate> paths) {
  impl_->set_paths(std::move(paths));
}
void Disk::forget_rdma_failures() {
  impl_->forget_rdma_failures();
}
void Disk::set_session(SessionConfig session) {
  impl_->set_session(std::move(session));
}
DiskStatus Disk::status() const {
  return impl_->status();
}
Reactor& Disk::reactor() {
  return impl_->reactor();
}
bool Disk::geometry_known() const {
  return impl_->geometry_known();
}
BlockGeometry Disk::geometry() const {
  return impl_->geometry();
}
void Disk::submit(BlockRequest& request) {
  impl_->submit(request);
}
void Disk::add_observer(BlockDeviceObserver& observer) {
  impl_->add_observer(observer);
}
void Disk::remove_observer(BlockDeviceObserver& observer) {
  impl_->remove_observer(observer);
}

}  // namespace vjbod::initiator
