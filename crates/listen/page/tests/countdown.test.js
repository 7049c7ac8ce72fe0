import assert from "node:assert/strict";
import { test } from "node:test";

import { formatClock } from "../countdown.js";

test("the countdown looks like a clock", () => {
  assert.deepEqual([0, 9, 65, 600, 3605].map(formatClock), ["0:00", "0:09", "1:05", "10:00", "1:00:05"]);
});
