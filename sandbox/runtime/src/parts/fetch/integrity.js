// Subresource Integrity (https://w3c.github.io/webappsec-subresource-integrity/), 3.3: whether bytes match the metadata
// of a request.

export function makeIntegrity(core) {
  const { list, native, push, stringIndexOf, stringSlice, stringToLowerCase } = core;
  const algorithms = [["sha256", "SHA-256"], ["sha384", "SHA-384"], ["sha512", "SHA-512"]]; // the weakest first

  // "parse metadata": the strongest algorithm's name and its values, undefined when there are none.
  function parse(metadata) {
    let strongest = -1;
    let values;
    const words = split(metadata);
    for (let i = 0; i < words.length; i++) {
      const dash = stringIndexOf(words[i], "-");
      if (dash < 0) continue;
      const name = stringToLowerCase(stringSlice(words[i], 0, dash));
      const option = stringIndexOf(words[i], "?");
      const value = stringSlice(words[i], dash + 1, option < 0 ? words[i].length : option);
      for (let k = 0; k < algorithms.length; k++) {
        if (algorithms[k][0] !== name || k < strongest) continue;
        if (k > strongest) values = list();
        strongest = k;
        push(values, value);
      }
    }
    return strongest < 0 ? undefined : { __proto__: null, algorithm: algorithms[strongest][1], values };
  }

  function split(text) {
    const words = list();
    let word = "";
    for (let i = 0; i <= text.length; i++) {
      const space = i === text.length || stringIndexOf(" \t\n\f\r", text[i]) >= 0;
      if (!space) word += text[i];
      else if (word !== "") push(words, word);
      if (space) word = "";
    }
    return words;
  }

  // base64url is base64 with other letters for two values; padding may be left away.
  function canonical(value) {
    let text = "";
    for (let i = 0; i < value.length; i++) if (value[i] !== "=") text += value[i] === "-" ? "+" : value[i] === "_" ? "/" : value[i];
    return text;
  }

  return function matches(bytes, metadata) {
    const wanted = parse(metadata);
    if (wanted === undefined) return true;
    const digest = canonical(core.apply(core.need("base64").btoa, undefined, [native.latin1(native.op("crypto.digest", wanted.algorithm, bytes))]));
    for (let i = 0; i < wanted.values.length; i++) if (canonical(wanted.values[i]) === digest) return true;
    return false;
  };
}
