// Uses URLPattern as programs do.

(() => {
  const pattern = new URLPattern({ pathname: "/users/:id" });
  pattern.exec("https://example.com/users/1");
  new URLPattern("https://*.example.com/:path*?q=(\\d+)").test("https://a.example.com/b/c?q=1");
})();
