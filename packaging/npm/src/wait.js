const firstMs = 100;
const longestMs = 5000;

/** Waits between attempts, from 0: each time up to twice as long, at random, and leastMs at least. A signal ends it. */
export function pause(attempt, signal, leastMs = 0) {
  const ms = Math.max(leastMs, Math.random() * Math.min(firstMs * 2 ** attempt, longestMs));
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
