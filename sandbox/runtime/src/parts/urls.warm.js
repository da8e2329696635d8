// Parses and writes URLs as programs do.

(() => {
  const url = new URL("https://user:pw@example.com:8080/a/../b%20c?q=1&r=a b#é");
  const next = new URL("../x?y=ü", url);
  url.origin;
  url.host;
  url.searchParams.append("k", "v w");
  url.pathname = "/p";
  url.search = "?a=b";
  url.hash = "h";
  `${url}${next.href}${url.searchParams}`;
  URL.canParse("x");
  URL.parse("http://1.2.3.4/");
  new URLSearchParams("?a=%20b+c").toString();
})();
