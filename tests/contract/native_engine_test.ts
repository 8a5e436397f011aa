import { startNative } from "../../src/grpc/native/native_engine.ts";
import { grpcEngineAnswers } from "./grpc_engine_answers.ts";
import { grpcEngineContract } from "./grpc_engine_contract.ts";
import { grpcEngineHeaders } from "./grpc_engine_headers.ts";

grpcEngineContract("native", startNative);
grpcEngineAnswers("native", startNative);
grpcEngineHeaders("native", startNative);
