#include <set>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <omnibus/v1/inference.pb.h>

#include "rpc_error.h"
#include "rpc_methods.h"

namespace omnibus {
namespace {

namespace pb = google::protobuf;
namespace reflection = grpc::reflection::v1;

constexpr int kNotFound = 5, kInvalidArgument = 3;

// The files whose services are served. Only they and what they import is shown.
std::vector<const pb::FileDescriptor*> served_files() {
  return {v1::GenerateRequest::descriptor()->file(),
          grpc::health::v1::HealthCheckRequest::descriptor()->file(),
          reflection::ServerReflectionRequest::descriptor()->file()};
}

// `file` behind all that it imports.
void collect(const pb::FileDescriptor* file, std::set<const pb::FileDescriptor*>& seen,
             reflection::FileDescriptorResponse& out) {
  if (!seen.insert(file).second) return;
  pb::FileDescriptorProto proto;
  file->CopyTo(&proto);
  out.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) collect(file->dependency(i), seen, out);
}

void answer_file(const pb::FileDescriptor* file, const std::string& asked,
                 reflection::ServerReflectionResponse& out) {
  if (file == nullptr) {
    out.mutable_error_response()->set_error_code(kNotFound);
    out.mutable_error_response()->set_error_message("not found: " + asked);
    return;
  }
  std::set<const pb::FileDescriptor*> seen;
  collect(file, seen, *out.mutable_file_descriptor_response());
}

reflection::ServerReflectionResponse answer(const reflection::ServerReflectionRequest& request) {
  using Request = reflection::ServerReflectionRequest;
  const pb::DescriptorPool& pool = *pb::DescriptorPool::generated_pool();
  reflection::ServerReflectionResponse out;
  out.set_valid_host(request.host());
  *out.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      answer_file(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(), out);
      break;
    case Request::kFileContainingSymbol:
      answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                  request.file_containing_symbol(), out);
      break;
    case Request::kFileContainingExtension:  // proto3 has none
      answer_file(nullptr, request.file_containing_extension().containing_type(), out);
      break;
    case Request::kAllExtensionNumbersOfType:
      if (pool.FindMessageTypeByName(request.all_extension_numbers_of_type()) != nullptr) {
        out.mutable_all_extension_numbers_response()->set_base_type_name(
            request.all_extension_numbers_of_type());
      } else {
        answer_file(nullptr, request.all_extension_numbers_of_type(), out);
      }
      break;
    case Request::kListServices:
      out.mutable_list_services_response();
      for (const pb::FileDescriptor* file : served_files()) {
        for (int i = 0; i < file->service_count(); ++i) {
          out.mutable_list_services_response()->add_service()->set_name(file->service(i)->full_name());
        }
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      out.mutable_error_response()->set_error_code(kInvalidArgument);
      out.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return out;
}

void handle(const HttpRequest& request, const ReplyPtr& reply) {
  reflection::ServerReflectionRequest message;
  if (!message.ParseFromString(request.body)) {
    reply->send(render_rpc_error(
        absl::InvalidArgumentError("The request is no grpc.reflection ServerReflectionRequest"), {}));
    return;
  }
  reply->send(rpc_message(answer(message).SerializeAsString()));
}

}  // namespace

std::vector<RpcMethod> reflection_methods() {
  std::vector<RpcMethod> methods;
  // The two versions have the same messages under two names; older tools ask for v1alpha alone.
  for (const char* version : {"v1", "v1alpha"}) {
    methods.emplace_back(
        std::string("/grpc.reflection.") + version + ".ServerReflection/ServerReflectionInfo",
        Scope::kInference, handle, /*many=*/true);
  }
  return methods;
}

}  // namespace omnibus
