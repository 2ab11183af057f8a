// SPDX-License-Identifier: Apache-2.0
// Calls the daemons' gRPC services with requests written as JSON, for tests that send what `vjbod`
// would not. Reads lines "Service/Method {json}" from stdin and prints one line of JSON for each:
// {"kind": exit code of vjbod, 0 for none, "text": why, "responses": [..]}.
//
//   vjbod_rpc_call unix PATH
//   vjbod_rpc_call tls ADDRESS PORT FINGERPRINT STATE_DIR     as the box whose identity is there;
//                                                             made when there is none
//   vjbod_rpc_call list                                       prints every method and its input
#include <iostream>
#include <memory>
#include <string>

#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <nlohmann/json.hpp>

#include "common/rpc/channel.h"
#include "common/rpc/identity.h"
#include "common/rpc/status_map.h"
#include "vjbod/v1/host.grpc.pb.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace {

namespace pb = google::protobuf;
using nlohmann::json;

constexpr auto call_timeout = std::chrono::seconds(20);

std::unique_ptr<pb::Message> make(const pb::Descriptor* type) {
  return std::unique_ptr<pb::Message>(
      pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

grpc::ByteBuffer to_buffer(const pb::Message& message) {
  grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

std::string to_string(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string all;
  for (const grpc::Slice& slice : slices)
    all.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return all;
}

// Each step is waited for; the tag does not matter.
bool wait(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

json call(grpc::GenericStub& stub, const pb::MethodDescriptor& method, const pb::Message& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + call_timeout);
  grpc::CompletionQueue queue;
  const std::string path = "/" + method.service()->full_name() + "/" + method.name();
  auto stream = stub.PrepareCall(&context, path, &queue);
  json responses = json::array();
  stream->StartCall(nullptr);
  bool open = wait(queue);
  if (open) {
    stream->WriteLast(to_buffer(request), grpc::WriteOptions(), nullptr);
    open = wait(queue);
  }
  while (open) {
    grpc::ByteBuffer buffer;
    stream->Read(&buffer, nullptr);
    if (!wait(queue)) break;
    auto message = make(method.output_type());
    std::string text;
    if (message->ParseFromString(to_string(buffer)))
      (void)pb::util::MessageToJsonString(*message, &text);
    responses.push_back(json::parse(text, nullptr, false));
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  (void)wait(queue);
  queue.Shutdown();
  if (status.ok()) return {{"kind", 0}, {"text", ""}, {"responses", responses}};
  const vjbod::Error error =
      vjbod::rpc::from_grpc_status(status, vjbod::rpc::Callee::peer, "the other side");
  return {{"kind", error.code.value()}, {"text", error.text}, {"responses", responses}};
}

int list() {
  for (const pb::FileDescriptor* file :
       {vjbod::v1::HostStatus::descriptor()->file(), vjbod::v1::TargetStatus::descriptor()->file()})
    for (int s = 0; s < file->service_count(); ++s)
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const pb::MethodDescriptor* method = file->service(s)->method(m);
        json fields = json::array();
        for (int f = 0; f < method->input_type()->field_count(); ++f)
          fields.push_back(method->input_type()->field(f)->name());
        std::cout << json{{"method", file->service(s)->name() + "/" + method->name()},
                          {"fields", fields}}
                  << "\n";
      }
  return 0;
}

int fail(const std::string& what) {
  std::cerr << "vjbod_rpc_call: " << what << "\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::shared_ptr<grpc::Channel> channel;
  if (arguments.size() == 1 && arguments[0] == "list") return list();
  if (arguments.size() == 2 && arguments[0] == "unix") {
    channel = vjbod::rpc::make_local_channel(arguments[1]);
  } else if (arguments.size() == 5 && arguments[0] == "tls") {
    auto fingerprint = vjbod::rpc::parse_fingerprint(arguments[3]);
    auto identity = vjbod::rpc::load_or_make_identity(arguments[4], "tester");
    if (!fingerprint || !identity) return fail("wrong fingerprint or identity");
    channel = vjbod::rpc::make_peer_channel(*identity, *fingerprint, arguments[1],
                                            static_cast<uint16_t>(std::stoi(arguments[2])));
  } else {
    return fail("see the head of rpc_call.cc");
  }
  grpc::GenericStub stub(channel);
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    std::string name = "vjbod.v1." + line.substr(0, space);
    if (const size_t slash = name.find('/'); slash != std::string::npos) name[slash] = '.';
    const auto* method = pb::DescriptorPool::generated_pool()->FindMethodByName(name);
    if (method == nullptr) return fail("there is no method " + name);
    auto request = make(method->input_type());
    const auto parsed = pb::util::JsonStringToMessage(line.substr(space + 1), request.get());
    if (!parsed.ok()) return fail(line + ": " + parsed.ToString());
    std::cout << call(stub, *method, *request).dump(-1, ' ', true, json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
