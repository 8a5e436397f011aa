import { KnownTable } from "../../src/grpc/known/known_table.ts";

// Loaded before the program, which then reads every request.
KnownTable.prototype.find = () => undefined;
