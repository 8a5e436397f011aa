export { seededRandom } from "../../src/base/seeded_random.ts";
