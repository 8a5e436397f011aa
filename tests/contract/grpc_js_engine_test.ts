import { startGrpcJs } from "../../src/grpc/grpc_js_engine.ts";
import { grpcEngineAnswers } from "./grpc_engine_answers.ts";
import { grpcEngineContract } from "./grpc_engine_contract.ts";
import { grpcEngineHeaders } from "./grpc_engine_headers.ts";

grpcEngineContract("grpc-js", startGrpcJs);
grpcEngineAnswers("grpc-js", startGrpcJs);
grpcEngineHeaders("grpc-js", startGrpcJs);
