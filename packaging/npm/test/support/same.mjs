/** Tells whether two trees of JSON are the same by the rules of ipc/protocol/testdata/README.md. */
export function sameValue(got, want) {
  if (typeof got !== "object" || typeof want !== "object" || got === null || want === null) return Object.is(got, want);
  if (Array.isArray(got) !== Array.isArray(want)) return false;
  if (Array.isArray(got)) return got.length === want.length && got.every((item, i) => sameValue(item, want[i]));
  const keys = Object.keys(want);
  if (keys.length === 1 && keys[0] === "@error" && "@error" in got) return sameError(got["@error"], want["@error"]);
  return sameMembers(got, want, Object.keys(got), keys);
}

function sameError(got, want) {
  const known = Object.keys(got).filter((key) => key !== "stack" || "stack" in want).sort();
  return sameMembers(got, want, known, Object.keys(want).sort());
}

function sameMembers(got, want, gotKeys, wantKeys) {
  return gotKeys.length === wantKeys.length && gotKeys.every((key, i) => key === wantKeys[i] && sameValue(got[key], want[key]));
}
