// Unit tests of random cases: here with the seed of the soak, and many more cases.
import "../unit/grpc/native/flood_test.ts";
import "../unit/ratelimit/forecast/explain_test.ts";
import "../unit/ratelimit/forecast/simulation_test.ts";
import "../unit/wire/reader_test.ts";
import "../unit/wire/rls_test.ts";
