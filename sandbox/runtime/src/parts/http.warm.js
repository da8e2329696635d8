// Uses requests and responses as programs do.

(async () => {
  const request = new Request("https://example.com/", { method: "POST", headers: { Accept: "*/*" }, body: JSON.stringify({ a: 1 }) });
  for (const [name, value] of request.headers) request.headers.set(name, value);
  await request.clone().json();
  await Response.json({ a: [1] }, { status: 201 }).text();
})();
