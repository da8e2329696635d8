// Uses Web Cryptography as programs do.

(async () => {
  const data = new Uint8Array(32);
  await crypto.subtle.digest("SHA-256", data);
  const mac = await crypto.subtle.importKey("raw", data, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  await crypto.subtle.verify("HMAC", mac, await crypto.subtle.sign("HMAC", mac, data), data);
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt", "decrypt"]);
  const iv = new Uint8Array(12);
  await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, data));
  await crypto.subtle.exportKey("jwk", key);
})();
