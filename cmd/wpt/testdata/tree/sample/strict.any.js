// META: variant=?one
// META: variant=?two
// META: variant=?wpt_flags=h2
/* A comment of
   two lines. */
"use strict";
test(() => { if (function () { return this; }() !== undefined) throw new Error("sloppy"); }, "the test is strict");
test(() => { if (location.search === "?two") throw new Error("two"); }, "the variant is known");
