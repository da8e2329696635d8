const kind = "a document";
test(() => { if (kind !== "a program") throw new Error(kind); }, "the patch");
