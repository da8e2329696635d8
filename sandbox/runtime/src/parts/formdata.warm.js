// Uses forms as programs do.

(async () => {
  const form = new FormData();
  form.append("a", "b");
  form.set("f", new Blob(["x"]), "name");
  for (const [key, value] of form) form.has(key, value);
  await new Response(form).formData();
})();
