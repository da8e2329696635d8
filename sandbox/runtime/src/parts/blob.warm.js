// Uses blobs as programs do.

(async () => {
  const blob = new Blob(["ab", new Uint8Array(2)], { type: "text/plain" });
  await blob.slice(1, 2).text();
  await blob.arrayBuffer();
  for await (const chunk of blob.stream()) void chunk;
  new File([blob], "name", { type: "a/b" }).name;
  URL.revokeObjectURL(URL.createObjectURL(blob));
})();
