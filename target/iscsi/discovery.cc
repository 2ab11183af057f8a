// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/discovery.h"

#include <algorithm>

#include "common/iscsi/errc.h"
#include "common/iscsi/text.h"

namespace vjbod::target {

namespace {

std::string_view host_of(std::string_view portal) {
  portal = portal.substr(0, portal.rfind(':'));
  if (portal.starts_with('[')) portal = portal.substr(1, portal.size() - 2);
  return portal;
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1";
}

bool is_link_local(std::string_view host) {
  if (host.starts_with("169.254.")) return true;
  // fe80::/10
  return host.size() > 4 &&
         (host.starts_with("fe8") || host.starts_with("fe9") || host.starts_with("fea") ||
          host.starts_with("feb")) &&
         host.find(':') != std::string_view::npos;
}

bool is_wildcard(std::string_view host) {
  return host == "0.0.0.0" || host == "::";
}

void add_target(const DiscoveryScope& scope, std::string_view name, iscsi::TextBuilder& out) {
  out.add("TargetName", name);
  auto add_address = [&](std::string_view portal) {
    out.add("TargetAddress", fmt::format("{},{}", portal, scope.portal_group_tag));
  };
  add_address(scope.reached_address);
  for (const std::string& portal : scope.other_portals) {
    if (portal != scope.reached_address && worth_advertising(portal, scope.reached_address)) {
      add_address(portal);
    }
  }
}

}  // namespace

bool worth_advertising(std::string_view portal, std::string_view reached) {
  const std::string_view host = host_of(portal);
  if (is_wildcard(host) || is_link_local(host)) return false;
  // Who came over loopback is this box; others cannot use its loopback, and it needs no way round.
  return is_loopback(host) == is_loopback(host_of(reached));
}

Result<std::string> answer_text(ConstBytes request, const DiscoveryScope& scope) {
  auto pairs = iscsi::split_text(request);
  if (!pairs) return fail(std::move(pairs).error());
  iscsi::TextBuilder out;
  for (const iscsi::TextPair& pair : *pairs) {
    if (pair.key != "SendTargets") {
      // RFC 7143 section 6.2: a key that is not known, or not for this phase.
      out.add(pair.key, "NotUnderstood");
      continue;
    }
    // Appendix C: All in a discovery session only; an empty value is the session's own target.
    std::string_view wanted = pair.value;
    if (wanted == "All" && !scope.discovery_session) {
      out.add(pair.key, "Reject");
      continue;
    }
    if (wanted.empty()) wanted = scope.own_target;
    for (const std::string& target : scope.targets) {
      if (pair.value == "All" || target == wanted) add_target(scope, target, out);
      if (out.text().size() > text_response_bytes_max) {
        return fail(iscsi::Errc::text_too_long, "the list of targets is longer than {} bytes",
                    text_response_bytes_max);
      }
    }
  }
  return out.take();
}

}  // namespace vjbod::target
