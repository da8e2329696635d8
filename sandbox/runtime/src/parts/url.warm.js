// Uses URL and URLSearchParams as programs do.

(() => {
  const url = new URL("https://user:pw@example.com:8080/a/../b%20c?q=1&r=a b#é");
  const next = new URL("../x?y=ü", url);
  for (const name of ["origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) url[name];
  url.searchParams.append("k", "v w");
  url.searchParams.set("q", "2");
  url.searchParams.get("q");
  url.pathname = "/p";
  url.search = "?a=b";
  url.hash = "h";
  `${url}${next.href}${JSON.stringify(url)}`;
  URL.canParse("x");
  URL.parse("http://1.2.3.4/");
  const params = new URLSearchParams({ a: 1, b: "x y" });
  for (const [key, value] of params) key + value;
  params.has("a");
  params.getAll("a");
  params.delete("a");
  new URLSearchParams([["a", "b"]]).toString();
  new URLSearchParams("?a=%20b+c").sort();
})();
