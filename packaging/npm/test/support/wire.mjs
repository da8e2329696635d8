import { connect, createServer } from "node:net";

/** A wire to the service at a unix socket that can be cut. Resolves to {url, cut, close}: cut ends all connections abruptly. */
export async function wireTo(path) {
  const pairs = new Set();
  let down = false;
  const server = createServer((near) => {
    if (down) return near.destroy();
    const far = connect({ path });
    const pair = [near, far];
    pairs.add(pair);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.on("data", (bytes) => to.writable && to.write(bytes));
      from.on("error", () => {});
      from.on("close", () => {
        to.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const [near, far] of pairs) {
      near.destroy();
      far.destroy();
    }
  };
  return {
    url: `tcp://127.0.0.1:${server.address().port}`,
    cut,
    /** Whether connections are refused. */
    set down(value) { down = value; },
    get open() { return pairs.size; },
    close: () => {
      cut();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
