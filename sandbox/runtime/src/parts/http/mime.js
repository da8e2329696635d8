// MIME types (MIME Sniffing, 4: https://mimesniff.spec.whatwg.org/#parsing-a-mime-type).

export function makeMime(core, { isToken, normalize }) {
  const { list, mapGet, mapHas, mapSet, push, SafeMap, stringCharAt, stringCharCodeAt, stringIndexOf, stringSlice, stringToLowerCase } = core;

  function isQuotable(text) {
    for (let i = 0; i < text.length; i++) {
      const unit = stringCharCodeAt(text, i);
      if (unit !== 9 && (unit < 0x20 || unit === 0x7f || unit > 0xff)) return false;
    }
    return true;
  }

  // "collect an HTTP quoted string" with the extract-value flag, from the quote on.
  function quoted(text, from) {
    let value = "";
    for (let i = from + 1; i < text.length; i++) {
      if (text[i] === "\"") return { __proto__: null, value, next: i + 1 };
      if (text[i] === "\\" && i + 1 < text.length) i++;
      value += text[i];
    }
    return { __proto__: null, value, next: text.length };
  }

  /** {essence, parameters: list of names, values: Map} or null. */
  function parse(input) {
    const text = normalize(input);
    let at = stringIndexOf(text, ";");
    if (at < 0) at = text.length;
    const slash = stringIndexOf(text, "/");
    if (slash < 0 || slash > at) return null;
    const type = stringSlice(text, 0, slash);
    const subtype = normalize(stringSlice(text, slash + 1, at));
    if (!isToken(type) || !isToken(subtype)) return null;
    const mime = { __proto__: null, essence: stringToLowerCase(`${type}/${subtype}`), names: list(), values: new SafeMap() };
    while (at < text.length) at = parameter(text, at + 1, mime);
    return mime;
  }

  // Reads one parameter and returns where the next ';' is.
  function parameter(text, from, mime) {
    let at = from;
    while (at < text.length && normalize(text[at]) === "") at++;
    let end = at;
    while (end < text.length && text[end] !== ";" && text[end] !== "=") end++;
    const name = stringToLowerCase(stringSlice(text, at, end));
    if (end >= text.length || text[end] === ";") return end;
    at = end + 1;
    let next = stringIndexOf(text, ";", at);
    let value;
    if (stringCharAt(text, at) === "\"") {
      const string = quoted(text, at);
      value = string.value;
      next = stringIndexOf(text, ";", string.next);
    } else {
      value = trimEnd(stringSlice(text, at, next < 0 ? text.length : next));
      if (value === "") return next < 0 ? text.length : next;
    }
    if (isToken(name) && isQuotable(value) && !mapHas(mime.values, name)) {
      push(mime.names, name);
      mapSet(mime.values, name, value);
    }
    return next < 0 ? text.length : next;
  }

  // Removes HTTP whitespace at the end.
  function trimEnd(value) {
    let end = value.length;
    while (end > 0 && normalize(value[end - 1]) === "") end--;
    return stringSlice(value, 0, end);
  }

  function serialize(mime) {
    let text = mime.essence;
    for (let i = 0; i < mime.names.length; i++) {
      const value = mapGet(mime.values, mime.names[i]);
      text += `;${mime.names[i]}=${isToken(value) ? value : quote(value)}`;
    }
    return text;
  }
  function quote(value) {
    let text = "\"";
    for (let i = 0; i < value.length; i++) text += value[i] === "\"" || value[i] === "\\" ? `\\${value[i]}` : value[i];
    return `${text}"`;
  }

  // "get, decode, and split"
  function split(value) {
    const values = list();
    let from = 0;
    for (let i = 0; i <= value.length; i++) {
      if (i < value.length && value[i] === "\"") {
        i = skipQuoted(value, i) - 1;
      } else if (i === value.length || value[i] === ",") {
        push(values, normalize(stringSlice(value, from, i)));
        from = i + 1;
      }
    }
    return values;
  }
  const skipQuoted = (value, at) => quoted(value, at).next;

  /** "extract a MIME type" of a Content-Type header's combined value (Fetch, 2.2.2); null is failure. */
  function extract(value) {
    if (value === null) return null;
    const values = split(value);
    let charset = null;
    let essence = null;
    let mime = null;
    for (let i = 0; i < values.length; i++) {
      const next = parse(values[i]);
      if (next === null || next.essence === "*/*") continue;
      mime = next;
      if (mime.essence !== essence) {
        charset = mapGet(mime.values, "charset") ?? null;
        essence = mime.essence;
      } else if (!mapHas(mime.values, "charset") && charset !== null) {
        push(mime.names, "charset");
        mapSet(mime.values, "charset", charset);
      }
    }
    return mime;
  }

  return { __proto__: null, parse, serialize, extract, parameterOf: (mime, name) => mapGet(mime.values, name) };
}
