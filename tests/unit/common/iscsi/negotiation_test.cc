// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/negotiation.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

// Feeds "Key=value" pairs and gives the answers as "Key=value Key=value".
struct Feed {
  explicit Feed(Side side, const NegotiationWishes& wishes = {}) : negotiation(side, wishes) {}

  std::string operator()(std::initializer_list<std::string_view> lines) {
    std::vector<TextPair> pairs;
    for (const std::string_view line : lines) {
      const size_t equals = line.find('=');
      pairs.push_back({line.substr(0, equals), line.substr(equals + 1)});
    }
    TextBuilder answers;
    const Status received = negotiation.receive(pairs, answers);
    code = received ? std::error_code() : received.error().code;
    if (!received) return "error: " + received.error().text;
    std::string text = answers.take();
    std::replace(text.begin(), text.end(), '\0', ' ');
    if (!text.empty()) text.pop_back();
    return text;
  }
  std::string offers() {
    TextBuilder out;
    negotiation.offer(out);
    std::string text = out.take();
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
  }
  NegotiatedParameters agreed() { return negotiation.finish().value(); }

  Negotiation negotiation;
  std::error_code code;
};

TEST(Negotiation, WithoutAnyKeyTheDefaultsHold) {
  const NegotiatedParameters agreed = Feed(Side::target).agreed();
  EXPECT_FALSE(agreed.header_digest);
  EXPECT_TRUE(agreed.initial_r2t);
  EXPECT_TRUE(agreed.immediate_data);
  EXPECT_EQ(agreed.peer_max_recv_data_segment_length, 8192U);
  EXPECT_EQ(agreed.our_max_recv_data_segment_length, 8192U) << "not declared, so not in force";
  EXPECT_EQ(agreed.max_burst_length, 262144U);
}

struct AnswerCase {
  std::string_view offer;
  std::string_view answer;
};

TEST(NegotiationOfTarget, AnswersEachKeyByItsRule) {
  NegotiationWishes wishes;
  wishes.header_digest = DigestWish::prefer;
  wishes.max_burst_length = 1048576;
  wishes.first_burst_length = 131072;
  wishes.time2wait_s = 1;
  for (const auto& [offer, answer] : std::initializer_list<AnswerCase>{
           {"HeaderDigest=CRC32C,None", "HeaderDigest=CRC32C"},
           {"HeaderDigest=None,CRC32C", "HeaderDigest=None"},
           {"HeaderDigest=X-other,CRC32C", "HeaderDigest=CRC32C"},
           {"HeaderDigest=X-other", "HeaderDigest=Reject"},
           {"HeaderDigest=", "HeaderDigest=Reject"},
           {"DataDigest=CRC32C", "DataDigest=Reject"},
           {"DataDigest=CRC32C,None", "DataDigest=None"},
           {"MaxConnections=8", "MaxConnections=1"},
           {"MaxConnections=0", "MaxConnections=Reject"},
           {"InitialR2T=No", "InitialR2T=Yes"},
           {"InitialR2T=Yes", "InitialR2T=Yes"},
           {"InitialR2T=Maybe", "InitialR2T=Reject"},
           {"ImmediateData=Yes", "ImmediateData=Yes"},
           {"ImmediateData=No", "ImmediateData=No"},
           {"MaxBurstLength=16776192", "MaxBurstLength=1048576"},
           {"MaxBurstLength=0x8000", "MaxBurstLength=32768"},
           {"MaxBurstLength=511", "MaxBurstLength=Reject"},
           {"MaxBurstLength=16777216", "MaxBurstLength=Reject"},
           {"MaxBurstLength=-1", "MaxBurstLength=Reject"},
           {"FirstBurstLength=1048576", "FirstBurstLength=131072"},
           {"DefaultTime2Wait=0", "DefaultTime2Wait=1"},
           {"DefaultTime2Wait=30", "DefaultTime2Wait=30"},
           {"DefaultTime2Wait=3601", "DefaultTime2Wait=Reject"},
           {"DefaultTime2Retain=20", "DefaultTime2Retain=0"},
           {"MaxOutstandingR2T=16", "MaxOutstandingR2T=1"},
           {"DataPDUInOrder=No", "DataPDUInOrder=Yes"},
           {"DataSequenceInOrder=No", "DataSequenceInOrder=Yes"},
           {"ErrorRecoveryLevel=2", "ErrorRecoveryLevel=0"},
           {"ErrorRecoveryLevel=3", "ErrorRecoveryLevel=Reject"},
           {"TaskReporting=FastAbort,RFC3720", "TaskReporting=RFC3720"},
           {"TaskReporting=FastAbort", "TaskReporting=Reject"},
           {"iSCSIProtocolLevel=2", "iSCSIProtocolLevel=1"},
           {"IFMarker=No", "IFMarker=No"},
           {"OFMarker=Yes", "OFMarker=No"},
           {"IFMarkInt=2048~8192", "IFMarkInt=Reject"},
           {"OFMarkInt=1", "OFMarkInt=Reject"},
           {"RDMAExtensions=Yes", "RDMAExtensions=No"},
           {"RDMAExtensions=No", "RDMAExtensions=No"},
           {"TargetRecvDataSegmentLength=8192", "TargetRecvDataSegmentLength=Irrelevant"},
           {"InitiatorRecvDataSegmentLength=1", "InitiatorRecvDataSegmentLength=Irrelevant"},
           {"MaxOutstandingUnexpectedPDUs=64", ""},
           {"iSERHelloRequired=Yes", ""},
           {"X-com.example.key=1", "X-com.example.key=NotUnderstood"},
           {"Nonsense=", "Nonsense=NotUnderstood"},
       }) {
    Feed feed(Side::target, wishes);
    EXPECT_EQ(feed({offer}), answer) << offer;
  }
}

TEST(NegotiationOfTarget, ARejectedKeyKeepsItsDefault) {
  Feed feed(Side::target);
  feed({"MaxBurstLength=1", "ImmediateData=?", "ErrorRecoveryLevel=9"});
  EXPECT_EQ(feed.agreed().max_burst_length, 262144U);
  EXPECT_TRUE(feed.agreed().immediate_data);
  EXPECT_EQ(feed.agreed().error_recovery_level, 0U);
}

TEST(NegotiationOfTarget, TheOutcomeIsWhatWasAnswered) {
  NegotiationWishes wishes;
  wishes.header_digest = wishes.data_digest = DigestWish::prefer;
  Feed feed(Side::target, wishes);
  feed({"HeaderDigest=CRC32C", "DataDigest=None,CRC32C", "MaxBurstLength=65536",
        "FirstBurstLength=16384", "MaxRecvDataSegmentLength=131072", "ImmediateData=No",
        "DefaultTime2Wait=7", "DefaultTime2Retain=9"});
  feed.offers();
  const NegotiatedParameters agreed = feed.agreed();
  EXPECT_TRUE(agreed.header_digest);
  EXPECT_FALSE(agreed.data_digest);
  EXPECT_EQ(agreed.max_burst_length, 65536U);
  EXPECT_EQ(agreed.first_burst_length, 16384U);
  EXPECT_EQ(agreed.peer_max_recv_data_segment_length, 131072U);
  EXPECT_EQ(agreed.our_max_recv_data_segment_length, wishes.max_recv_data_segment_length);
  EXPECT_FALSE(agreed.immediate_data);
  EXPECT_EQ(agreed.default_time2wait, std::chrono::seconds(7));
  EXPECT_EQ(agreed.default_time2retain, std::chrono::seconds(0));
}

TEST(NegotiationOfTarget, FirstBurstNeverExceedsMaxBurstWhateverTheOrder) {
  Feed feed(Side::target);
  EXPECT_EQ(feed({"FirstBurstLength=65536", "MaxBurstLength=8192"}),
            "MaxBurstLength=8192 FirstBurstLength=8192");
  Feed defaults(Side::target);
  defaults({"MaxBurstLength=1024"});
  EXPECT_EQ(defaults.agreed().first_burst_length, 1024U);
}

TEST(NegotiationOfTarget, InitialR2tMayBeNoWhereWeAllowIt) {
  NegotiationWishes wishes;
  wishes.initial_r2t = false;
  Feed feed(Side::target, wishes);
  EXPECT_EQ(feed({"InitialR2T=No"}), "InitialR2T=No");
  EXPECT_FALSE(feed.agreed().initial_r2t);
}

TEST(NegotiationOfTarget, ADiscoverySessionMakesKeysIrrelevant) {
  Feed feed(Side::target);
  feed.negotiation.set_discovery();
  EXPECT_EQ(feed({"MaxBurstLength=8192", "InitialR2T=Yes", "TaskReporting=RFC3720"}),
            "InitialR2T=Irrelevant MaxBurstLength=Irrelevant TaskReporting=Irrelevant");
  EXPECT_EQ(feed({"HeaderDigest=None", "MaxRecvDataSegmentLength=4096"}), "HeaderDigest=None");
  EXPECT_EQ(feed.agreed().peer_max_recv_data_segment_length, 4096U);
  EXPECT_TRUE(feed.agreed().discovery);
}

TEST(NegotiationOfTarget, AKeyMayComeOnceInALogin) {
  Feed feed(Side::target);
  feed({"InitialR2T=Yes", "MaxRecvDataSegmentLength=8192", "MaxBurstLength=1"});
  for (const char* again :
       {"InitialR2T=Yes", "MaxRecvDataSegmentLength=8192", "MaxBurstLength=8192"}) {
    feed({again});
    EXPECT_EQ(feed.code, Errc::protocol) << again;
  }
  Feed twice(Side::target);
  twice({"InitialR2T=Yes", "InitialR2T=Yes"});
  EXPECT_EQ(twice.code, Errc::protocol);
}

TEST(NegotiationOfTarget, AnIllegalDeclarationEndsTheLogin) {
  for (const char* declaration :
       {"MaxRecvDataSegmentLength=511", "MaxRecvDataSegmentLength=16777216",
        "MaxRecvDataSegmentLength=big", "MaxRecvDataSegmentLength="}) {
    Feed feed(Side::target);
    feed({declaration});
    EXPECT_EQ(feed.code, Errc::bad_value) << declaration;
  }
}

TEST(NegotiationOfTarget, AnswersAreNoOffers) {
  for (const char* offer : {"InitialR2T=Reject", "MaxBurstLength=Irrelevant",
                            "HeaderDigest=NotUnderstood", "Nonsense=NotUnderstood"}) {
    Feed feed(Side::target);
    feed({offer});
    EXPECT_EQ(feed.code, Errc::protocol) << offer;
  }
}

TEST(NegotiationOfTarget, RequiredDigestsThatWereNotAgreedAreNoAgreement) {
  NegotiationWishes wishes;
  wishes.data_digest = DigestWish::require;
  Feed feed(Side::target, wishes);
  EXPECT_EQ(feed({"DataDigest=None"}), "DataDigest=Reject");
  EXPECT_EQ(feed.negotiation.finish().error().code, Errc::negotiation);
  Feed silent(Side::target, wishes);
  EXPECT_FALSE(silent.negotiation.finish());
  Feed willing(Side::target, wishes);
  EXPECT_EQ(willing({"DataDigest=None,CRC32C"}), "DataDigest=CRC32C");
  EXPECT_TRUE(willing.agreed().data_digest);
}

TEST(NegotiationOfTarget, DeclaresItsSegmentLengthOnly) {
  EXPECT_EQ(Feed(Side::target).offers(), "MaxRecvDataSegmentLength=262144 ");
}

TEST(NegotiationOfTarget, WithRdmaTheIserKeysCount) {
  NegotiationWishes wishes;
  wishes.rdma_extensions = true;
  Feed feed(Side::target, wishes);
  EXPECT_EQ(feed({"InitiatorRecvDataSegmentLength=4096", "TargetRecvDataSegmentLength=65536",
                  "RDMAExtensions=Yes"}),
            "RDMAExtensions=Yes TargetRecvDataSegmentLength=65536 "
            "InitiatorRecvDataSegmentLength=4096");
  EXPECT_TRUE(feed.agreed().rdma_extensions);
  EXPECT_EQ(feed.agreed().our_max_recv_data_segment_length, 65536U);
  EXPECT_EQ(feed.agreed().peer_max_recv_data_segment_length, 4096U);
  Feed refused(Side::target, wishes);
  refused({"RDMAExtensions=No"});
  EXPECT_FALSE(refused.negotiation.finish());
}

TEST(NegotiationOfTarget, DeclaresIserLimitsToThoseWhoKnowTheKeys) {
  NegotiationWishes wishes;
  wishes.rdma_extensions = true;
  Feed silent(Side::target, wishes);
  silent({"RDMAExtensions=Yes"});
  EXPECT_EQ(silent.offers(), "MaxRecvDataSegmentLength=262144 ");

  Feed knowing(Side::target, wishes);
  EXPECT_EQ(knowing({"RDMAExtensions=Yes", "MaxOutstandingUnexpectedPDUs=16", "MaxAHSLength=48",
                     "TaggedBufferForSolicitedDataOnly=Yes", "iSERHelloRequired=No"}),
            "RDMAExtensions=Yes");
  EXPECT_EQ(knowing.offers(),
            "MaxOutstandingUnexpectedPDUs=32 MaxAHSLength=256 MaxRecvDataSegmentLength=262144 ");
  EXPECT_EQ(knowing.agreed().peer_max_outstanding_unexpected_pdus, 16U);
  EXPECT_EQ(knowing.agreed().peer_max_ahs_length, 48U);
}

TEST(NegotiationOfTarget, HasNoHelloMessages) {
  NegotiationWishes wishes;
  wishes.rdma_extensions = true;
  Feed feed(Side::target, wishes);
  feed({"RDMAExtensions=Yes", "iSERHelloRequired=Yes"});
  EXPECT_EQ(feed.negotiation.finish().error().code, Errc::negotiation);
}

TEST(NegotiationOfInitiator, DeclaresItsIserLimits) {
  NegotiationWishes wishes;
  wishes.rdma_extensions = true;
  const std::string offers = Feed(Side::initiator, wishes).offers();
  for (const char* pair :
       {"RDMAExtensions=Yes ", "HeaderDigest=None ", "InitialR2T=Yes ", "ImmediateData=Yes ",
        "MaxOutstandingUnexpectedPDUs=32 ", "MaxAHSLength=256 ",
        "TaggedBufferForSolicitedDataOnly=Yes ", "iSERHelloRequired=No "}) {
    EXPECT_NE(offers.find(pair), std::string::npos) << pair << " in " << offers;
  }
}

TEST(NegotiationOfInitiator, TakesWhatTheTargetDeclaresOfIserAndThatItKnowsNoneOfIt) {
  NegotiationWishes wishes;
  wishes.rdma_extensions = true;
  Feed knowing(Side::initiator, wishes);
  knowing.offers();
  EXPECT_EQ(knowing({"RDMAExtensions=Yes", "MaxOutstandingUnexpectedPDUs=5"}), "");
  EXPECT_EQ(knowing.agreed().peer_max_outstanding_unexpected_pdus, 5U);

  Feed unknowing(Side::initiator, wishes);
  unknowing.offers();
  EXPECT_EQ(
      unknowing({"RDMAExtensions=Yes", "MaxOutstandingUnexpectedPDUs=NotUnderstood",
                 "MaxAHSLength=NotUnderstood", "TaggedBufferForSolicitedDataOnly=NotUnderstood",
                 "iSERHelloRequired=NotUnderstood"}),
      "");
  EXPECT_TRUE(unknowing.agreed().rdma_extensions);
}

TEST(NegotiationOfInitiator, OffersWhatItWishes) {
  NegotiationWishes wishes;
  wishes.header_digest = DigestWish::prefer;
  wishes.data_digest = DigestWish::require;
  wishes.first_burst_length = 2097152;
  const std::string offers = Feed(Side::initiator, wishes).offers();
  for (const char* pair :
       {"HeaderDigest=CRC32C,None ", "DataDigest=CRC32C ", "MaxConnections=1 ",
        "ErrorRecoveryLevel=0 ", "InitialR2T=Yes ", "ImmediateData=Yes ", "MaxBurstLength=1048576 ",
        "FirstBurstLength=1048576 ", "MaxOutstandingR2T=1 ", "DataPDUInOrder=Yes ",
        "DataSequenceInOrder=Yes ", "MaxRecvDataSegmentLength=262144 "}) {
    EXPECT_NE(offers.find(pair), std::string::npos) << pair << " in " << offers;
  }
}

TEST(NegotiationOfInitiator, OffersFewKeysForDiscovery) {
  Feed feed(Side::initiator);
  feed.negotiation.set_discovery();
  EXPECT_EQ(feed.offers(), "HeaderDigest=None DataDigest=None MaxRecvDataSegmentLength=262144 ");
}

TEST(NegotiationOfInitiator, TakesAnswersThatItsOffersAllow) {
  NegotiationWishes wishes;
  wishes.header_digest = DigestWish::prefer;
  Feed feed(Side::initiator, wishes);
  feed.offers();
  EXPECT_EQ(feed({"HeaderDigest=CRC32C", "MaxBurstLength=8192", "FirstBurstLength=65536",
                  "ImmediateData=No", "DefaultTime2Wait=3", "MaxRecvDataSegmentLength=8192"}),
            "");
  EXPECT_TRUE(feed.agreed().header_digest);
  EXPECT_EQ(feed.agreed().max_burst_length, 8192U);
  EXPECT_EQ(feed.agreed().first_burst_length, 8192U) << "FirstBurstLength is bounded";
  EXPECT_FALSE(feed.agreed().immediate_data);
  EXPECT_EQ(feed.agreed().default_time2wait, std::chrono::seconds(3));
}

TEST(NegotiationOfInitiator, RefusesAnswersThatItsOffersDoNotAllow) {
  for (const char* answer :
       {"HeaderDigest=CRC32C", "InitialR2T=No", "MaxBurstLength=1048577", "MaxOutstandingR2T=2",
        "DataPDUInOrder=No", "ErrorRecoveryLevel=1", "MaxConnections=2"}) {
    Feed feed(Side::initiator);
    feed.offers();
    feed({answer});
    EXPECT_EQ(feed.code, Errc::negotiation) << answer;
  }
  for (const char* answer : {"InitialR2T=", "MaxBurstLength=511", "MaxBurstLength=x"}) {
    Feed feed(Side::initiator);
    feed.offers();
    feed({answer});
    EXPECT_EQ(feed.code, Errc::bad_value) << answer;
  }
}

TEST(NegotiationOfInitiator, RefusedKeysKeepTheirDefaults) {
  NegotiationWishes wishes;
  wishes.header_digest = DigestWish::prefer;
  Feed feed(Side::initiator, wishes);
  feed.offers();
  EXPECT_EQ(
      feed({"HeaderDigest=Reject", "MaxBurstLength=NotUnderstood", "FirstBurstLength=Irrelevant"}),
      "");
  EXPECT_FALSE(feed.agreed().header_digest);
  EXPECT_EQ(feed.agreed().max_burst_length, 262144U);
}

TEST(NegotiationOfInitiator, ARequiredDigestThatIsRefusedEndsTheLogin) {
  NegotiationWishes wishes;
  wishes.header_digest = DigestWish::require;
  Feed feed(Side::initiator, wishes);
  feed.offers();
  feed({"HeaderDigest=Reject"});
  EXPECT_EQ(feed.negotiation.finish().error().code, Errc::negotiation);
}

TEST(NegotiationOfInitiator, AnswersWhatTheTargetOffers) {
  Feed feed(Side::initiator);
  feed.offers();
  EXPECT_EQ(feed({"TaskReporting=FastAbort,RFC3720", "X-com.example=1"}),
            "X-com.example=NotUnderstood TaskReporting=RFC3720");
}

TEST(NegotiationOfInitiator, RefusesKeysOfTheOtherEnd) {
  Feed feed(Side::initiator);
  feed.offers();
  feed({"iSERHelloRequired=Yes"});
  EXPECT_EQ(feed.code, Errc::protocol);
}

}  // namespace
}  // namespace vjbod::iscsi
