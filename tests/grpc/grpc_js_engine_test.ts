import { startGrpcJs } from "../../src/grpc/grpc_js_engine.ts";
import { grpcEngineAnswers } from "../contract/grpc_engine_answers.ts";
import { grpcEngineContract } from "../contract/grpc_engine_contract.ts";

grpcEngineContract("grpc-js", startGrpcJs);
grpcEngineAnswers("grpc-js", startGrpcJs);
